package errcode

// Retry classifies a code by whether the same request may succeed later.
type Retry int

// The values of Retry.
const (
	// Never: the same request will fail again; something must be changed first.
	Never Retry = iota + 1
	// Later: the same request may succeed later, without any change but waiting.
	Later
	// Says: each error with this code carries the answer.
	Says
)

// retries is the table of all codes; docs/protocol.md has it too.
var retries = map[string]Retry{
	InvalidMessage:      Never,
	UnknownType:         Never,
	InvalidAudio:        Never,
	AudioTooFast:        Later,
	NotStarted:          Never,
	AlreadyStarted:      Never,
	NotAvailable:        Never,
	UnknownProvider:     Never,
	UnknownAgent:        Never,
	UnknownConversation: Never,
	TicketMissing:       Never,
	TicketWrong:         Never,
	TicketOrigin:        Never,
	TicketUsed:          Never,
	TicketExpired:       Never,
	VoiceActive:         Later,
	VoiceLost:           Later,
	ResumeRefused:       Never,
	StartTimeout:        Never,
	ProviderUnavailable: Says,
	ProviderLost:        Later,
	ProviderError:       Says,
	TranscriptionFailed: Never,
	ProviderAuth:        Never,
	ProviderBusy:        Later,
	ProviderQuota:       Never,
	ProviderAnswer:      Never,
	TooLong:             Never,
	ContentFilter:       Never,
	Refused:             Never,
	SettingRefused:      Never,
	NoAnswer:            Later,
	NoSpeech:            Never,
	Flooding:            Later,
	Limit:               Later,
	Budget:              Later,
	Blocked:             Never,
	ConfirmationUnknown: Never,
	ConfirmationUsed:    Never,
	ConfirmationExpired: Never,
	StoreUnavailable:    Later,
	Unsent:              Later,
	SessionEnding:       Never,
	Draining:            Later,
	Internal:            Later,
}

// RetryOf returns the table's entry for a code, or zero if the code is unknown.
func RetryOf(code string) Retry { return retries[code] }
