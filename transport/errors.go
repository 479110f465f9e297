package transport

import (
	"errors"
	"time"
)

// Error is the type of every error that an adapter returns.
type Error struct {
	Provider string
	// Op is the failed operation: "dial", "setup", "history", "send", "recv", "response", or the refused command in
	// the adapter's words ("truncate").
	Op   string
	Kind Kind
	// Code is the provider's code: a close code, an HTTP status or an error code. It is safe for logs and metrics.
	Code string
	// RetryAfter is the wait that the provider asks for; zero without one.
	RetryAfter time.Duration
	// Err is the cause. It contains no credential; its text may come from the provider and is for the log only.
	Err error
}

// Error returns all fields, for the log.
func (e *Error) Error() string {
	s := e.Provider + ": " + e.Op + ": " + e.Kind.String()
	if e.Code != "" {
		s += " (" + e.Code + ")"
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the first [*Error] in err's tree, or zero.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return 0
}
