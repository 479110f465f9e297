package protocol

import "github.com/coder/websocket"

// Close codes of the protocol. From 4000 to 4499, reconnecting may help; from 4500 to 4999, it doesn't. RFC 6455
// section 7.4 defines the others.
const (
	CloseDone                = websocket.StatusNormalClosure   // 1000
	CloseServerLeaving       = websocket.StatusGoingAway       // 1001
	ClosePolicy              = websocket.StatusPolicyViolation // 1008
	CloseTooBig              = websocket.StatusMessageTooBig   // 1009
	CloseInternal            = websocket.StatusInternalError   // 1011
	CloseTryLater            = websocket.StatusTryAgainLater   // 1013
	CloseProviderUnavailable = websocket.StatusCode(4001)
	CloseProviderLost        = websocket.StatusCode(4002)
	CloseSlowClient          = websocket.StatusCode(4003)
	CloseIdle                = websocket.StatusCode(4004)
	CloseLength              = websocket.StatusCode(4005)
	CloseVoiceLost           = websocket.StatusCode(4006)
	CloseMoving              = websocket.StatusCode(4007)
	CloseLimit               = websocket.StatusCode(4029)
	CloseBadProtocol         = websocket.StatusCode(4500)
	CloseTicket              = websocket.StatusCode(4501)
	CloseTicketUsed          = websocket.StatusCode(4502)
	CloseBlocked             = websocket.StatusCode(4503)
	CloseStartTimeout        = websocket.StatusCode(4504)
	CloseUnknownTarget       = websocket.StatusCode(4505)
	CloseResumedElsewhere    = websocket.StatusCode(4506)
)

// Values of Error.Code.
const (
	CodeInvalidMessage      = "invalid_message"
	CodeUnknownType         = "unknown_type"
	CodeInvalidAudio        = "invalid_audio"
	CodeAudioTooFast        = "audio_too_fast"
	CodeNotStarted          = "not_started"
	CodeAlreadyStarted      = "already_started"
	CodeNotAvailable        = "not_available"
	CodeUnknownProvider     = "unknown_provider"
	CodeUnknownAgent        = "unknown_agent"
	CodeUnknownConversation = "unknown_conversation"
	CodeTicketMissing       = "ticket_missing"
	CodeTicketWrong         = "ticket_wrong"
	CodeTicketOrigin        = "ticket_origin"
	CodeTicketUsed          = "ticket_used"
	CodeTicketExpired       = "ticket_expired"
	CodeVoiceActive         = "voice_active"
	CodeVoiceLost           = "voice_lost"
	CodeResumeRefused       = "resume_refused"
	CodeStartTimeout        = "start_timeout"
	CodeProviderUnavailable = "provider_unavailable"
	CodeProviderLost        = "provider_lost"
	CodeProviderError       = "provider_error"
	CodeTranscriptionFailed = "transcription_failed"
	CodeProviderAuth        = "provider_auth"
	CodeProviderBusy        = "provider_busy"
	CodeProviderQuota       = "provider_quota"
	CodeProviderAnswer      = "provider_answer"
	CodeTooLong             = "too_long"
	CodeContentFilter       = "content_filter"
	CodeRefused             = "refused"
	CodeSettingRefused      = "setting_refused"
	CodeNoAnswer            = "no_answer"
	CodeNoSpeech            = "no_speech"
	CodeFlooding            = "flooding"
	CodeLimit               = "limit"
	CodeBudget              = "budget"
	CodeBlocked             = "blocked"
	CodeConfirmationUnknown = "confirmation_unknown"
	CodeConfirmationUsed    = "confirmation_used"
	CodeConfirmationExpired = "confirmation_expired"
	CodeStoreUnavailable    = "store_unavailable"
	CodeUnsent              = "unsent"
	CodeSessionEnding       = "session_ending"
	CodeDraining            = "draining"
	CodeInternal            = "internal"
)

// Retry classifies a code by whether the same request may succeed later.
type Retry int

const (
	// RetryNever means that the same request fails again.
	RetryNever Retry = iota + 1
	// RetryLater means that the same request may succeed later.
	RetryLater
	// RetryDepends means that the answer depends on the cause: see the error message.
	RetryDepends
)

// retries has all codes. A test compares it with docs/protocol.md.
var retries = map[string]Retry{
	CodeInvalidMessage:      RetryNever,
	CodeUnknownType:         RetryNever,
	CodeInvalidAudio:        RetryNever,
	CodeAudioTooFast:        RetryLater,
	CodeNotStarted:          RetryNever,
	CodeAlreadyStarted:      RetryNever,
	CodeNotAvailable:        RetryNever,
	CodeUnknownProvider:     RetryNever,
	CodeUnknownAgent:        RetryNever,
	CodeUnknownConversation: RetryNever,
	CodeTicketMissing:       RetryNever,
	CodeTicketWrong:         RetryNever,
	CodeTicketOrigin:        RetryNever,
	CodeTicketUsed:          RetryNever,
	CodeTicketExpired:       RetryNever,
	CodeVoiceActive:         RetryLater,
	CodeVoiceLost:           RetryLater,
	CodeResumeRefused:       RetryNever,
	CodeStartTimeout:        RetryNever,
	CodeProviderUnavailable: RetryDepends,
	CodeProviderLost:        RetryLater,
	CodeProviderError:       RetryDepends,
	CodeTranscriptionFailed: RetryNever,
	CodeProviderAuth:        RetryNever,
	CodeProviderBusy:        RetryLater,
	CodeProviderQuota:       RetryNever,
	CodeProviderAnswer:      RetryNever,
	CodeTooLong:             RetryNever,
	CodeContentFilter:       RetryNever,
	CodeRefused:             RetryNever,
	CodeSettingRefused:      RetryNever,
	CodeNoAnswer:            RetryLater,
	CodeNoSpeech:            RetryNever,
	CodeFlooding:            RetryLater,
	CodeLimit:               RetryLater,
	CodeBudget:              RetryLater,
	CodeBlocked:             RetryNever,
	CodeConfirmationUnknown: RetryNever,
	CodeConfirmationUsed:    RetryNever,
	CodeConfirmationExpired: RetryNever,
	CodeStoreUnavailable:    RetryLater,
	CodeUnsent:              RetryLater,
	CodeSessionEnding:       RetryNever,
	CodeDraining:            RetryLater,
	CodeInternal:            RetryLater,
}

// RetryOf returns a code's entry, or zero if it is unknown.
func RetryOf(code string) Retry { return retries[code] }
