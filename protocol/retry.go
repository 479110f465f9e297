package protocol

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
