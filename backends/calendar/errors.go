package calendar

import (
	"errors"
	"fmt"
	"net/url"
	"time"
)

// Kind classes what went wrong with a calendar, for whoever has to decide what to do
// about it.
type Kind string

// The kinds.
const (
	// Invalid: what was asked cannot be done as it was asked.
	Invalid Kind = "invalid"
	// NotFound: there is no such calendar.
	NotFound Kind = "not_found"
	// Auth: the calendar refuses the gateway's credentials, or what they may do.
	Auth Kind = "auth"
	// RateLimit: asked too often; RetryAfter says when again, if the calendar did.
	RateLimit Kind = "rate_limit"
	// Transient: the same may succeed later.
	Transient Kind = "transient"
	// Conflict: something else is where the event would be.
	Conflict Kind = "conflict"
	// Permanent: it will not succeed until somebody changes the configuration or the
	// calendar.
	Permanent Kind = "permanent"
)

// Error is what every backend returns.
type Error struct {
	Kind Kind
	// Message says what went wrong, in words that a model may say to a user: no
	// address, no account, no secret.
	Message string
	// RetryAfter is how long to wait, as the calendar has said; 0 if it has not.
	RetryAfter time.Duration
	// Unsure says that an event may have been created all the same, or may be yet: the
	// request has left, and nobody has said what came of it.
	Unsure bool
	// Err is the cause, for the log alone; may be nil.
	Err error
}

// Errorf makes an [Error] of kind whose cause is err, which may be nil.
func Errorf(kind Kind, err error, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...), Err: Bare(err)}
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

// KindOf is the kind of err, Transient for one that has none: what is not known may
// pass.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Transient
}

// Bare is err without the address that was asked, which net/http puts in front and
// which may hold what nobody should read in a log.
func Bare(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%s: %w", u.Op, u.Err)
	}
	return err
}
