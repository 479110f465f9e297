package transport

import (
	"errors"
	"time"
)

// Error is the type of every error that an adapter returns.
type Error struct {
	Provider string
	// Op is the operation that failed: "dial", "setup", "history", "send", "recv", "response", or the command
	// that the provider refused, in the adapter's own word ("truncate").
	Op   string
	Kind Kind
	// Code is the provider's own code as text: a close code, an HTTP status or an error
	// code. It is safe for logs and metrics.
	Code string
	// RetryAfter is how long the provider asks the caller to wait before the next attempt; zero if it
	// says nothing.
	RetryAfter time.Duration
	// Err is the cause. It never contains a credential; its text may come from the
	// provider and is meant only for the log.
	Err error
}

// Error returns all fields as text for the log.
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
