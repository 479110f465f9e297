package bounded

import (
	"cmp"
	"context"
	"net"
	"net/http"
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

var shared = sync.OnceValue(NewTransport)

// Shared returns the default transport. A caller that must leave no connections calls its CloseIdleConnections.
func Shared() *http.Transport { return shared() }

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

// CloseIdleConnections is called by http.Client's.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip implements http.RoundTripper.
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
