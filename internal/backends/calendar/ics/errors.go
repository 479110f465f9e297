package ics

import (
	"errors"
	"fmt"
)

var (
	// ErrMalformed is wrapped by errors about input that is not iCalendar.
	ErrMalformed = errors.New("ics: not iCalendar")
	// ErrTooMany is wrapped by errors about more than MaxEvents events.
	ErrTooMany = fmt.Errorf("ics: more than %d events", MaxEvents)
	// ErrTooBig is wrapped by errors about input that exceeds another limit.
	ErrTooBig = errors.New("ics: too big")
	// ErrRule is wrapped by errors about an unsupported recurrence.
	ErrRule = errors.New("ics: unsupported recurrence")
	// ErrZone is wrapped by errors about an unknown time zone.
	ErrZone = errors.New("ics: unknown time zone")
)
