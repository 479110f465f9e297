package audit

import "errors"

var (
	// ErrLost says that records were given up when a Log was closed, because their place did not
	// accept them in time.
	ErrLost = errors.New("audit records are lost")
	// ErrStuck says that a write had not returned when the time for closing was over.
	ErrStuck = errors.New("a write of the audit does not return")
	// ErrForeign says that a line is not a record of this package.
	ErrForeign = errors.New("the line is no audit record")
	// ErrPath says that the audit's file cannot be where it was asked for.
	ErrPath = errors.New("the audit file cannot be used")
)
