package image

import (
	"context"
	"errors"
	"fmt"
	"time"

	"voicegw/internal/bounded"
)

// Limits bound the answer of an image model: at most most bytes.
func Limits(most int64) bounded.Limits {
	return bounded.Limits{
		Service: "the image model", Format: bounded.JSON, Bytes: most, Elements: 10_000,
		Idle: 3 * time.Minute, Whole: 5 * time.Minute, // the model is silent while it draws
	}
}

// OverBound turns an answer that exceeds a bound into a failure; nil if err is not about a
// bound. The failure wraps ErrSize if the answer is too large.
func OverBound(err error) *Error {
	over, ok := bounded.As(err)
	switch {
	case !ok:
		return nil
	case over.Bound == bounded.BoundFailure:
		return &Error{Kind: KindOfStatus(over.Status), Status: over.Status, Err: over}
	case over.Passing():
		return &Error{Kind: KindTransient, Status: over.Status, Unsure: true, Err: over}
	case over.Most == 0: // a redirect, or an unsupported encoding
		return &Error{Kind: KindRequest, Status: over.Status, Err: over}
	default:
		return &Error{Kind: KindAnswer, Status: over.Status, Err: fmt.Errorf("%w: %w", ErrSize, over)}
	}
}

// Ended returns the failure of a request whose ctx has ended: ctx's error, since an image may
// have been made, or a transient one if the time was up before anything was sent.
func Ended(ctx context.Context, unsent bool) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && unsent {
		return &Error{Kind: KindTransient, Err: ctx.Err()}
	}
	return ctx.Err()
}
