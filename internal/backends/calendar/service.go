package calendar

import (
	"context"
	"errors"

	"voicegw/internal/bounded"
)

// Service is how messages call a calendar's server at the start of a sentence: "The calendar
// server", "Google". Its methods make the errors that backends over HTTP have in common.
type Service string

// TooMuch is the error for an answer over its bounds.
func (s Service) TooMuch(over *bounded.Error) *Error {
	switch {
	case over.Passing():
		return Errorf(Transient, over, "%s takes too long to answer.", s)
	case over.Most == 0: // a redirect, or an unsupported encoding
		return s.NotUnderstood(Permanent, over)
	default:
		return Errorf(Permanent, over, "The calendar has too much in it.")
	}
}

// NotUnderstood is the error for an answer that cannot be read.
func (s Service) NotUnderstood(kind Kind, err error) *Error {
	return Errorf(kind, err, "%s's answer is not understood.", s)
}

// Unanswered is the error for a request without an answer. It wraps err, so that
// [bounded.Unsent] recognises it; if ctx has ended, it wraps that of ctx too and is no *Error.
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

// BrokenOff is the error for an answer whose body could not be read to its end; nil if err is
// nil. If ctx has ended, it is that of ctx.
func (s Service) BrokenOff(ctx context.Context, err error) error {
	over, isOver := bounded.As(err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case isOver:
		return s.TooMuch(over)
	case err != nil:
		return Errorf(Transient, err, "%s broke off its answer.", s)
	}
	return nil
}

// Unsure makes the error of a creation without a good answer Unsure, if it may pass and the
// request was sent.
func (s Service) Unsure(err error, sent bool) *Error {
	e, ok := errors.AsType[*Error](err)
	if !ok { // the context has ended
		e = Errorf(Transient, err, "%s does not answer in time.", s)
	}
	e.Unsure = e.Kind == Transient && sent
	return e
}
