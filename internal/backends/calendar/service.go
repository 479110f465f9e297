package calendar

import (
	"context"
	"errors"

	"voicegw/internal/bounded"
)

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
