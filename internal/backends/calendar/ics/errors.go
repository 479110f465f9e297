package ics

import "errors"

var (
	// ErrMalformed is wrapped by the error for input that is not iCalendar.
	ErrMalformed = errors.New("ics: not iCalendar")
	// ErrTooMany is wrapped by the error for more events than may be read.
	ErrTooMany = errors.New("ics: more events than are read")
	// ErrTooBig is returned for input beyond MaxBytes.
	ErrTooBig = errors.New("ics: too big")
	// ErrRule is wrapped by the error for an unsupported recurrence.
	ErrRule = errors.New("ics: the recurrence is not understood")
	// ErrZone is wrapped by the error for an unknown time zone.
	ErrZone = errors.New("ics: the time zone is not known")
)
