package ics

import "errors"

var (
	// ErrMalformed is wrapped by the errors of what is no iCalendar.
	ErrMalformed = errors.New("ics: not iCalendar")
	// ErrTooMany is wrapped where there are more events than are read.
	ErrTooMany = errors.New("ics: more events than are read")
	// ErrTooBig is what is returned for more than can be read.
	ErrTooBig = errors.New("ics: too big")
	// ErrRule is wrapped by the errors of a recurrence that is not understood.
	ErrRule = errors.New("ics: the recurrence is not understood")
	// ErrZone is wrapped by the errors of a time zone that nobody knows.
	ErrZone = errors.New("ics: the time zone is not known")
)
