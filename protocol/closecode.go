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

// ErrorCode describes a value of Error.Code.
type ErrorCode struct {
	Code  string
	Retry Retry
	// Meaning is Markdown for docs/protocol.md, in the row of this code and the following ones without a meaning.
	Meaning string
}

// ErrorCodes is the table of all codes. make docs writes it into docs/protocol.md.
var ErrorCodes = []ErrorCode{
	{CodeInvalidMessage, RetryNever, "correct the field in `ref`"},
	{CodeUnknownType, RetryNever, "unknown message"},
	{CodeInvalidAudio, RetryNever, "empty, odd or too long frame; dropped"},
	{CodeAudioTooFast, RetryLater, "over 5 s ahead of real time; frames were dropped. At most 2.5 times a second"},
	{CodeNotStarted, RetryNever, "send `session.start` first, once"},
	{CodeAlreadyStarted, RetryNever, ""},
	{CodeNotAvailable, RetryNever, "not supported here"},
	{CodeUnknownProvider, RetryNever, "see `GET /v1/providers`"},
	{CodeUnknownAgent, RetryNever, ""},
	{CodeTicketMissing, RetryNever, "see the reason [below](#how-a-session-ends)"},
	{CodeTicketWrong, RetryNever, ""},
	{CodeTicketOrigin, RetryNever, ""},
	{CodeTicketUsed, RetryNever, ""},
	{CodeTicketExpired, RetryNever, ""},
	{CodeUnknownConversation, RetryNever, ""},
	{CodeResumeRefused, RetryNever, ""},
	{CodeStartTimeout, RetryNever, ""},
	{CodeVoiceActive, RetryLater, "see the reason below"},
	{CodeVoiceLost, RetryLater, ""},
	{CodeProviderUnavailable, RetryDepends, "the model is unreachable or refuses the gateway"},
	{CodeProviderLost, RetryLater, "the model's connection broke"},
	{CodeProviderError, RetryDepends, "the model reported an error; the session continues"},
	{CodeTranscriptionFailed, RetryNever, "a user transcript is missing; the answer is not affected"},
	{CodeProviderBusy, RetryLater, "`retry_after_ms` is the requested wait"},
	{CodeProviderQuota, RetryNever, "the model failed ([voice](providers.md#when-a-model-fails), " +
		"[text](chat.md#when-the-model-fails)); the session continues"},
	{CodeProviderAuth, RetryNever, ""},
	{CodeProviderAnswer, RetryNever, ""},
	{CodeTooLong, RetryNever, ""},
	{CodeContentFilter, RetryNever, ""},
	{CodeRefused, RetryNever, "[text](chat.md#when-the-model-fails) only"},
	{CodeSettingRefused, RetryNever, ""},
	{CodeNoAnswer, RetryLater, "say it again"},
	{CodeFlooding, RetryLater, "[slow down](#how-much-may-come)"},
	{CodeLimit, RetryLater, ""},
	{CodeBudget, RetryLater, "[quota](cost.md#limits) used up, until `until` for daily ones; HTTP 429 by text"},
	{CodeConfirmationUnknown, RetryNever, "not of this session; already answered; too late, ask the model again"},
	{CodeConfirmationUsed, RetryNever, ""},
	{CodeConfirmationExpired, RetryNever, ""},
	{CodeStoreUnavailable, RetryLater, "nothing was recorded; try again"},
	{CodeNoSpeech, RetryNever, "push-to-talk with under 200 ms of audio"},
	{CodeUnsent, RetryLater, "the model is unreachable, or too much [context](#context) waits; send again later"},
	{CodeSessionEnding, RetryNever, "the session accepts nothing more"},
	{CodeDraining, RetryLater, "[text](chat.md#when-the-gateway-shuts-down) only: shutting down"},
	{CodeBlocked, RetryNever, "the user is blocked until `until`"},
	{CodeInternal, RetryLater, "a bug of the gateway; start again"},
}

var retries = func() map[string]Retry {
	all := make(map[string]Retry, len(ErrorCodes))
	for _, c := range ErrorCodes {
		all[c.Code] = c.Retry
	}
	return all
}()

// RetryOf returns a code's entry, or zero if it is unknown.
func RetryOf(code string) Retry { return retries[code] }
