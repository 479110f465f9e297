package calendar

import (
	"context"
	"errors"
	"fmt"
	"time"

	"voicegw/internal/bounded"
)

// Kind classifies the failures of a calendar.
type Kind string

// The kinds.
const (
	Invalid   Kind = "invalid"    // the request cannot be fulfilled in this form
	NotFound  Kind = "not_found"  // there is no such calendar
	Auth      Kind = "auth"       // the calendar rejects the gateway's credentials, or they lack a permission
	RateLimit Kind = "rate_limit" // too many requests
	Transient Kind = "transient"  // the same request may succeed later
	Conflict  Kind = "conflict"   // another event has the same id or name
	Permanent Kind = "permanent"  // the request needs another configuration or calendar
)

// Error is the error of every backend.
type Error struct {
	Kind       Kind
	Message    string        // for models and users. It contains no address, account or secret.
	RetryAfter time.Duration // the pause that the calendar requested; 0 means none
	// Unsure means that the calendar may have got the request but did not answer, so the event may exist or appear later.
	Unsure bool
	Err    error // the cause, only for the log; it may be nil
}

// Errorf makes an [Error] with a cause, which may be nil.
func Errorf(kind Kind, err error, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...), Err: bounded.Bare(err)}
}

// TooLarge is the error of a calendar with more data or events than a backend reads.
func TooLarge(err error) *Error { return Errorf(Permanent, err, "The calendar is too large to read.") }

// Occupied is the message of a creation whose id belongs to another entry of the calendar.
const Occupied = "The calendar already has another entry with the id of this event."

// Error returns the kind, the message and the cause.
func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("calendar: %s: %s: %v", e.Kind, e.Message, e.Err)
	}
	return fmt.Sprintf("calendar: %s: %s", e.Kind, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of err, or Transient for another error, because it may pass.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Transient
}

// Service is the name of a calendar's server at the start of a sentence: "The calendar server", "Google". Its methods
// make the errors that backends over HTTP share.
type Service string

// TooMuch is the error of an answer that exceeds its bounds.
func (s Service) TooMuch(over *bounded.Error) *Error {
	switch {
	case over.Passing():
		return Errorf(Transient, over, "%s takes too long to answer.", s)
	case over.Most == 0: // a redirect, or an unsupported encoding
		return s.Malformed(Permanent, over)
	default:
		return TooLarge(over)
	}
}

// Malformed is the error of an invalid answer.
func (s Service) Malformed(kind Kind, err error) *Error {
	return Errorf(kind, err, "%s's answer is invalid.", s)
}

// Unanswered is the error of a request without an answer. It wraps err for [bounded.Unsent]; if ctx has ended, it also
// wraps the error of ctx and is not an *Error.
func (s Service) Unanswered(ctx context.Context, err error) error {
	err = bounded.Bare(err)
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	if over, ok := bounded.As(err); ok {
		e := s.TooMuch(over)
		e.Err = err
		return e
	}
	return Errorf(Transient, err, "%s cannot be reached.", s)
}

// BrokenOff returns the error of an answer whose body ended early, the error of an ended ctx, or nil if err is nil.
func (s Service) BrokenOff(ctx context.Context, err error) error {
	over, isOver := bounded.As(err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case isOver:
		return s.TooMuch(over)
	case err != nil:
		return Errorf(Transient, err, "%s sent an incomplete answer.", s)
	}
	return nil
}

// Unsure marks the error of a failed creation as Unsure if it may pass and the request was sent.
func (s Service) Unsure(err error, sent bool) *Error {
	e, ok := errors.AsType[*Error](err)
	if !ok { // the context has ended
		e = Errorf(Transient, err, "%s does not answer in time.", s)
	}
	e.Unsure = e.Kind == Transient && sent
	return e
}
