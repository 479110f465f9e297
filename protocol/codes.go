package protocol

import "github.com/coder/websocket"

// The codes of Error.Code.
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
	CodeFlooding            = "flooding"
	CodeLimit               = "limit"
	CodeBlocked             = "blocked"
	CodeConfirmationUnknown = "confirmation_unknown"
	CodeConfirmationUsed    = "confirmation_used"
	CodeConfirmationExpired = "confirmation_expired"
	CodeStoreUnavailable    = "store_unavailable"
	CodeSessionEnding       = "session_ending"
	CodeInternal            = "internal"
)

// The close codes of the protocol: 4000 to 4499 say that connecting again may
// help, 4500 to 4999 that it will not. RFC 6455 section 7.4 has the others.
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
	CloseLimit               = websocket.StatusCode(4029)
	CloseBadProtocol         = websocket.StatusCode(4500)
	CloseTicket              = websocket.StatusCode(4501)
	CloseTicketUsed          = websocket.StatusCode(4502)
	CloseBlocked             = websocket.StatusCode(4503)
	CloseStartTimeout        = websocket.StatusCode(4504)
	CloseUnknownTarget       = websocket.StatusCode(4505)
)
