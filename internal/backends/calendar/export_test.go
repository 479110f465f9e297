package calendar

// The limits of an event, for the tests.
const (
	MaxTitle       = maxTitle
	MaxDescription = maxDescription
	MaxAttendees   = maxAttendees
	MaxLength      = maxLength
)

// The arithmetic of periods, for the tests.
var (
	Merge       = merge
	Gaps        = gaps
	LengthWords = lengthWords
)
