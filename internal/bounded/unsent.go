package bounded

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// unsent is the error of a request of which nothing has left.
type unsent struct{ error }

func (u unsent) Unwrap() error { return u.error }

// Unsent says whether err is that of a request of [Wrap] which certainly was not sent: no
// name, no connection, no TLS, or no time before there was one. The server has not seen
// it, so it has changed nothing. False means that nobody knows.
func Unsent(err error) bool {
	var u unsent
	return errors.As(err, &u)
}

// Watch returns a context for one call of a library that does not hand on its errors whole,
// and a function that says what Unsent would of the call's requests: none of them was sent.
func Watch(ctx context.Context) (context.Context, func() bool) {
	var s sending
	return s.trace(ctx), func() bool { return s.asked.Load() && !s.got.Load() }
}

// sending watches whether a request gets a connection. net/http writes nothing of a
// request before it has one (httptrace.ClientTrace.GotConn, Go 1.26); what comes after is
// not told apart, since a request that is given up may be at work in its writer still.
type sending struct{ asked, got atomic.Bool }

func (s *sending) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { s.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { s.got.Store(true) },
	})
}

// mark says of err, an error of next, whether the request was sent. A transport that tells
// nothing of its connections is taken to have sent it.
func (s *sending) mark(next http.RoundTripper, err error) error {
	_, tells := next.(*http.Transport)
	if s.got.Load() || !tells && !s.asked.Load() {
		return err
	}
	return unsent{err}
}
