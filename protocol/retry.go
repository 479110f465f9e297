package protocol

// Retry says of a code whether the same may succeed later.
type Retry int

// The kinds of codes.
const (
	// RetryNever: it will be the same again; something has to be changed first.
	RetryNever Retry = iota + 1
	// RetryLater: the same may succeed later, although nobody changes anything but the pace.
	RetryLater
	// RetrySays: each error of the code says for itself.
	RetrySays
)

// retries is the table of all codes; docs/protocol.md has it too.
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
	CodeStartTimeout:        RetryNever,
	CodeProviderUnavailable: RetrySays,
	CodeProviderLost:        RetryLater,
	CodeProviderError:       RetrySays,
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
	CodeFlooding:            RetryLater,
	CodeLimit:               RetryLater,
	CodeBlocked:             RetryNever,
	CodeConfirmationUnknown: RetryNever,
	CodeConfirmationUsed:    RetryNever,
	CodeConfirmationExpired: RetryNever,
	CodeStoreUnavailable:    RetryLater,
	CodeSessionEnding:       RetryNever,
	CodeInternal:            RetryLater,
}

// RetryOf returns what the table has of a code, and zero for a code that it does not know.
func RetryOf(code string) Retry { return retries[code] }
