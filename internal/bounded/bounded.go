// Package bounded provides the program's HTTP clients, which read only a bounded amount of any answer. [Client] bounds
// the size of an answer's head and body, the body's content (depth and number of JSON or XML elements, size of a
// stream's event), the total time and the time without data. It follows no redirects and rejects compressed answers,
// whose decompressed size is unknown.
//
// TestEveryClientIsBounded (architecture_test.go) finds HTTP clients created elsewhere.
package bounded

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Format is a body's format, which defines its elements and pieces.
type Format int

// The formats.
const (
	// Bytes have no elements.
	Bytes Format = iota
	// JSON: each value is an element.
	JSON
	// Events are server-sent events with JSON data. A piece is one event, and Limits.Elements is for one event.
	Events
	// XML: elements and attributes count as elements. A piece is a text between tags, or a tag.
	XML
)

// The default limits.
const (
	// DefaultBytes bounds a body.
	DefaultBytes = 8 << 20
	// DefaultElements bounds the elements of JSON and XML.
	DefaultElements = 100_000
	// DefaultDepth bounds the nesting of JSON and XML.
	DefaultDepth = 64
	// DefaultPiece bounds an event, and a text in XML, in bytes.
	DefaultPiece = 1 << 20
	// DefaultIdle bounds the time without data.
	DefaultIdle = time.Minute
	// DefaultWhole bounds the time of an answer.
	DefaultWhole = 5 * time.Minute

	// MaxFailure bounds the body of an answer with status 300 or more in bytes.
	MaxFailure = 64 << 10
	// MaxHeader bounds an answer's head with its interim answers (1xx) in bytes.
	MaxHeader = 64 << 10
)

// Limits bound a service's answers. Zero means the default.
type Limits struct {
	// Service is the service's name in errors, such as "the chat model".
	Service string
	Format  Format
	// Bytes bounds a body.
	Bytes int64
	// Elements and Depth bound JSON and XML.
	Elements, Depth int64
	// Piece bounds an event of Events and a text of XML in bytes.
	Piece int64
	// Idle bounds the time without data, before the head and within the body.
	Idle time.Duration
	// Whole bounds the time from the request to the end of the body.
	Whole time.Duration
}

func (l Limits) withDefaults() Limits {
	l.Service = cmp.Or(l.Service, "the server")
	l.Bytes = cmp.Or(l.Bytes, DefaultBytes)
	l.Elements = cmp.Or(l.Elements, DefaultElements)
	l.Depth = cmp.Or(l.Depth, DefaultDepth)
	l.Piece = cmp.Or(l.Piece, DefaultPiece)
	l.Idle = cmp.Or(l.Idle, DefaultIdle)
	l.Whole = cmp.Or(l.Whole, DefaultWhole)
	return l
}

// Shared returns the default transport. A caller that must leave no connections calls its CloseIdleConnections.
var Shared = sync.OnceValue(NewTransport)

// NewTransport returns a transport that bounds an answer's head; [Wrap] bounds the body.
func NewTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
		MaxIdleConns: 100, MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second, ExpectContinueTimeout: time.Second,
		MaxResponseHeaderBytes: MaxHeader,
	}
}

// Over returns a client over next, like Client.
func Over(next http.RoundTripper, l Limits) *http.Client {
	return Client(&http.Client{Transport: next}, l)
}

// Unfollowed returns a client over a transport of [Wrap] that returns redirects as answers, for callers that handle
// them.
func Unfollowed(wrapped http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     wrapped,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Client returns a client with bounded answers: a copy of c, or one over Shared if c is nil. A redirect is an *Error. It
// may be used concurrently. The head is bounded if c's transport is from NewTransport.
func Client(c *http.Client, l Limits) *http.Client {
	own := http.Client{}
	if c != nil {
		own = *c
	}
	own.Transport = Wrap(own.Transport, l)
	service := l.withDefaults().Service
	own.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		return &Error{Service: service, Bound: BoundRedirect, Status: r.Response.StatusCode}
	}
	return &own
}

// Wrap returns a transport with bounded answers; nil means Shared. Its errors, and those of its bodies, wrap an *Error
// if a limit is the cause; [Unsent] reports whether the request was sent. The body of a 101 answer is unchanged. Bodies
// must be closed.
func Wrap(next http.RoundTripper, l Limits) http.RoundTripper {
	if next == nil {
		next = Shared()
	}
	return &transport{next: next, limits: l.withDefaults()}
}

type transport struct {
	next   http.RoundTripper
	limits Limits
}

func (t *transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	w := &watch{limits: &t.limits, cancel: cancel, cause: func() error { return context.Cause(ctx) }}
	w.start()
	var sent sending
	own := r.Clone(sent.trace(ctx))
	if own.Header.Get("Accept-Encoding") == "" {
		// Otherwise net/http requests gzip and decompresses without a limit.
		own.Header.Set("Accept-Encoding", "identity")
	}
	resp, err := t.next.RoundTrip(own)
	w.pause()
	if err != nil {
		err = sent.mark(t.next, w.why(err))
		w.end()
		return nil, err
	}
	resp.Request = r
	w.status.Store(int32(resp.StatusCode))
	if resp.StatusCode == http.StatusSwitchingProtocols {
		w.end() // the caller owns the connection
		return resp, nil
	}
	if coding := resp.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		_ = resp.Body.Close()
		w.end()
		return nil, w.over(BoundCompressed, 0)
	}
	b := &body{from: resp.Body, watch: w, bound: BoundBytes, most: t.limits.Bytes}
	if resp.StatusCode >= http.StatusMultipleChoices {
		b.bound, b.most = BoundFailure, MaxFailure
	} else {
		b.guard = newGuard(&t.limits)
	}
	b.left = b.most
	resp.Body = b
	return resp, nil
}

type watch struct {
	limits *Limits
	cancel context.CancelCauseFunc
	cause  func() error
	status atomic.Int32 // 0 until the head arrives

	whole, idle *time.Timer
}

func (w *watch) start() {
	w.whole = time.AfterFunc(w.limits.Whole, func() { w.cancel(w.over(BoundWhole, int64(w.limits.Whole))) })
	w.idle = time.AfterFunc(w.limits.Idle, func() { w.cancel(w.over(BoundIdle, int64(w.limits.Idle))) })
}

// wait and pause surround each wait for the server.
func (w *watch) wait()  { w.idle.Reset(w.limits.Idle) }
func (w *watch) pause() { w.idle.Stop() }

func (w *watch) end() {
	w.whole.Stop()
	w.idle.Stop()
	w.cancel(nil)
}

func (w *watch) over(bound Bound, most int64) *Error {
	return &Error{Service: w.limits.Service, Bound: bound, Most: most, Status: int(w.status.Load())}
}

// why returns the limit that caused err, or err itself.
func (w *watch) why(err error) error {
	if own, ok := As(w.cause()); ok {
		return own
	}
	// net/http has no type for it (transport.go, h2_bundle.go; Go 1.26).
	for _, text := range []string{"server response headers exceeded", "response header list larger than", "too many 1xx informational"} {
		if strings.Contains(err.Error(), text) {
			return w.over(BoundHeader, MaxHeader)
		}
	}
	return err
}

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

type body struct {
	from  io.ReadCloser
	watch *watch
	bound Bound // the limit in bytes
	most  int64 // in bytes
	left  int64
	guard *guard // may be nil
	err   error  // final

	closing sync.Once
}

// Read implements io.Reader. An error is final.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one byte more, to notice the excess
	}
	b.watch.wait()
	n, err := b.from.Read(p)
	b.watch.pause()
	over := int64(n) > b.left
	if over {
		n, err = int(b.left), b.watch.over(b.bound, b.most)
	}
	b.left -= int64(n)
	if bound, most := b.guard.see(p[:n]); bound != "" {
		err, over = b.watch.over(bound, most), true
		n = 0 // the excess must not be decoded
	}
	if err == nil {
		return n, nil
	}
	if !over && !errors.Is(err, io.EOF) {
		err = b.watch.why(err)
	}
	b.err = err
	if over {
		b.watch.cancel(err) // the server need not continue
	}
	b.watch.end()
	return n, err
}

// Close implements io.Closer. The rest of the answer is not read.
func (b *body) Close() error {
	var err error
	b.closing.Do(func() {
		// First, so that a transport that drains the body stops.
		if b.err == nil {
			b.watch.cancel(errClosed)
		}
		err = b.from.Close()
		b.watch.end()
	})
	return err
}

var errClosed = errors.New("the answer was closed before its end")
