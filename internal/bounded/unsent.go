package bounded

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// unsent is the error of a request that was not sent at all.
type unsent struct{ error }

func (u unsent) Unwrap() error { return u.error }

// Unsent says whether err is the error of a request of [Wrap] which certainly was not sent: name
// resolution, connecting or TLS failed, or the time ended before. The server has not seen it, so
// it has changed nothing. False means that this is unknown.
func Unsent(err error) bool {
	var u unsent
	return errors.As(err, &u)
}

// Watch returns a context for one call of a library that hides its errors, and a function that
// says the same as Unsent about the call's requests: none of them was sent.
func Watch(ctx context.Context) (context.Context, func() bool) {
	var s sending
	return s.trace(ctx), func() bool { return s.asked.Load() && !s.got.Load() }
}

// sending records whether a request gets a connection. net/http writes nothing of a request
// before it has one (httptrace.ClientTrace.GotConn, Go 1.26); later moments are not
// distinguished, since a cancelled request may still be in its writer.
type sending struct{ asked, got atomic.Bool }

func (s *sending) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { s.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { s.got.Store(true) },
	})
}

// mark notes in err, an error of next, whether the request was sent. A transport without traces
// is assumed to have sent it.
func (s *sending) mark(next http.RoundTripper, err error) error {
	_, tells := next.(*http.Transport)
	if s.got.Load() || !tells && !s.asked.Load() {
		return err
	}
	return unsent{err}
}
