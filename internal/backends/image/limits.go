package image

import (
	"context"
	"errors"
	"fmt"
	"time"

	"voicegw/internal/bounded"
)

// limits bound the answer of an image model to most bytes.
func limits(most int64) bounded.Limits {
	return bounded.Limits{
		Service: "the image model", Format: bounded.JSON, Bytes: most, Elements: 10_000,
		Idle: 3 * time.Minute, Whole: 5 * time.Minute, // the model sends nothing while it draws
	}
}

// overBound converts the error of an answer that exceeds a bound; nil if err is another error. The result wraps ErrSize
// if the answer is too large.
func overBound(err error) *Error {
	over, ok := bounded.As(err)
	switch {
	case !ok:
		return nil
	case over.Bound == bounded.BoundFailure:
		return &Error{Kind: kindOf(over.Status), Status: over.Status, Err: over}
	case over.Passing():
		return &Error{Kind: KindTransient, Status: over.Status, Unsure: true, Err: over}
	case over.Most == 0: // a redirect, or an unsupported encoding
		return &Error{Kind: KindRequest, Status: over.Status, Err: over}
	default:
		return &Error{Kind: KindAnswer, Status: over.Status, Err: fmt.Errorf("%w: %w", ErrSize, over)}
	}
}

// ended returns the error of a request whose ctx has ended: ctx's error, or a transient error if the deadline passed
// before the request was sent.
func ended(ctx context.Context, unsent bool) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && unsent {
		return &Error{Kind: KindTransient, Err: ctx.Err()}
	}
	return ctx.Err()
}
