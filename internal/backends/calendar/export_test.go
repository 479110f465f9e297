package calendar

// The bounds of an event, for the tests.
const (
	MaxTitle       = maxTitle
	MaxDescription = maxDescription
	MaxAttendees   = maxAttendees
	MaxLength      = maxLength
)

// What the tests see of the arithmetic of periods.
var (
	Merge       = merge
	Gaps        = gaps
	LengthWords = lengthWords
)
