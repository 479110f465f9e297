package calendar

import (
	"errors"
	"fmt"
	"time"

	"voicegw/internal/bounded"
)

// Kind classifies the failures of a calendar, for the code that has to react.
type Kind string

// The kinds.
const (
	// Invalid: the request cannot be fulfilled in this form.
	Invalid Kind = "invalid"
	// NotFound: there is no such calendar.
	NotFound Kind = "not_found"
	// Auth: the calendar rejects the gateway's credentials, or they lack a permission.
	Auth Kind = "auth"
	// RateLimit: too many requests; RetryAfter is the calendar's pause, if it named one.
	RateLimit Kind = "rate_limit"
	// Transient: the same request may succeed later.
	Transient Kind = "transient"
	// Conflict: something else is in the place of the event.
	Conflict Kind = "conflict"
	// Permanent: it will not succeed until somebody changes the configuration or the
	// calendar.
	Permanent Kind = "permanent"
)

// Error is the error of every backend.
type Error struct {
	Kind Kind
	// Message says what went wrong, in words that a model may say to a user: no
	// address, no account, no secret.
	Message string
	// RetryAfter is the pause that the calendar asked for; 0 if it did not ask for a pause.
	RetryAfter time.Duration
	// Unsure says that an event may have been created, or may be created yet: the request was
	// sent, and no answer came.
	Unsure bool
	// Err is the cause, only for the log; it may be nil.
	Err error
}

// Errorf makes an [Error] of kind whose cause is err, which may be nil.
func Errorf(kind Kind, err error, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...), Err: bounded.Bare(err)}
}

// Error is the kind, the message and the cause.
func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("calendar: %s: %s: %v", e.Kind, e.Message, e.Err)
	}
	return fmt.Sprintf("calendar: %s: %s", e.Kind, e.Message)
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of err, and Transient for an unknown error, because it may pass.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Transient
}
