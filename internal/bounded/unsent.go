package bounded

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

type unsent struct{ error }

func (u unsent) Unwrap() error { return u.error }

// Unsent reports whether err is from a request of [Wrap] that was certainly not sent: name resolution, connecting or TLS
// failed, or the time ended earlier. So the server has no side effects of it. False means unknown.
func Unsent(err error) bool {
	var u unsent
	return errors.As(err, &u)
}

// Watch returns a context for a call of a library that hides its errors, and a function like Unsent for the call's
// requests.
func Watch(ctx context.Context) (context.Context, func() bool) {
	var s sending
	return s.trace(ctx), func() bool { return s.asked.Load() && !s.got.Load() }
}

// sending records whether a request got a connection. net/http writes nothing earlier (httptrace.ClientTrace.GotConn, Go
// 1.26); later moments don't matter, because a cancelled request may still be in its writer.
type sending struct{ asked, got atomic.Bool }

func (s *sending) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { s.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { s.got.Store(true) },
	})
}

// mark records in err, an error of next, whether the request was sent. A transport without traces is assumed to have
// sent it.
func (s *sending) mark(next http.RoundTripper, err error) error {
	_, tells := next.(*http.Transport)
	if s.got.Load() || !tells && !s.asked.Load() {
		return err
	}
	return unsent{err}
}
