package errcode

// Retry says of a code whether the same may succeed later.
type Retry int

// The kinds of codes.
const (
	// Never: it will be the same again; something has to be changed first.
	Never Retry = iota + 1
	// Later: the same may succeed later, although nobody changes anything but the pace.
	Later
	// Says: each error of the code says for itself.
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
	Flooding:            Later,
	Limit:               Later,
	Blocked:             Never,
	ConfirmationUnknown: Never,
	ConfirmationUsed:    Never,
	ConfirmationExpired: Never,
	StoreUnavailable:    Later,
	SessionEnding:       Never,
	Internal:            Later,
}

// RetryOf returns what the table has of a code, and zero for a code that it does not know.
func RetryOf(code string) Retry { return retries[code] }
