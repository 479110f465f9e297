package transport

import (
	"errors"
	"fmt"
)

// Kind classes an error by what the caller should do about it. It comes from the
// HTTP status, the close code or the provider's error code by a table in each
// adapter, never from text.
type Kind uint8

// The kinds, from harmless to final.
const (
	// KindIgnore: nothing is wrong that matters (a cancel that came too late).
	KindIgnore Kind = iota + 1
	// KindRetry: the connection is gone, a new one may work.
	KindRetry
	// KindExpired: the connection has lived its time; a new one will work.
	KindExpired
	// KindRefused: this request was refused; the connection stands.
	KindRefused
	// KindAuth: the credential was refused; trying again will not help.
	KindAuth
	// KindQuota: the account has no quota or credit left.
	KindQuota
	// KindInvalid: the provider does not accept what we sent, now or later.
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

// Retryable says whether connecting again may help.
func (k Kind) Retryable() bool { return k == KindRetry || k == KindExpired }

// Error is what every failure of an adapter is reported as.
type Error struct {
	Provider string
	// Op is what was being done: "dial", "setup", "send", "recv", "response".
	Op   string
	Kind Kind
	// Code is the provider's own: a close code, an HTTP status or an error code, as
	// text. It is fit for logs and metrics.
	Code string
	// Err is the cause. It never holds a credential; its text may come from the
	// provider and is for the log only.
	Err error
}

// Error says all of it, for the log.
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
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return 0
}
