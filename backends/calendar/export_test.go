package calendar

// The bounds of an event, for the tests.
const (
	MaxAttendees = maxAttendees
	MaxLength    = maxLength
)

// What the tests see of the arithmetic of periods.
var (
	Merge       = merge
	Gaps        = gaps
	LengthWords = lengthWords
)
