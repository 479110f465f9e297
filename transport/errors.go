package transport

import (
	"errors"
	"fmt"
)

// Kind classifies an error by what the caller should do about it. Each adapter looks it
// up in a table by HTTP status, close code or the provider's error code, never by the
// error's text.
type Kind uint8

// The kinds, from harmless to final.
const (
	// KindIgnore: nothing important went wrong (for example, a cancel came too late).
	KindIgnore Kind = iota + 1
	// KindRetry: the connection is lost; a new one may work.
	KindRetry
	// KindExpired: the connection reached its maximum age; a new one will work.
	KindExpired
	// KindRefused: this request was refused; the connection stays open.
	KindRefused
	// KindAuth: the credential was refused; trying again will not help.
	KindAuth
	// KindQuota: the account has no quota or credit left.
	KindQuota
	// KindInvalid: the provider does not accept what we sent and never will.
	KindInvalid
	// KindClosed: this side closed the connection.
	KindClosed
)

var kindNames = [...]string{
	KindIgnore: "ignore", KindRetry: "retry", KindExpired: "expired", KindRefused: "refused",
	KindAuth: "auth", KindQuota: "quota", KindInvalid: "invalid", KindClosed: "closed",
}

// String returns the kind's name in lower case.
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Retryable reports whether connecting again may help.
func (k Kind) Retryable() bool { return k == KindRetry || k == KindExpired }

// Error is the type of every error that an adapter returns.
type Error struct {
	Provider string
	// Op is the operation that failed: "dial", "setup", "history", "send", "recv", "response".
	Op   string
	Kind Kind
	// Code is the provider's own code as text: a close code, an HTTP status or an error
	// code. It is safe for logs and metrics.
	Code string
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
