package protocol

import (
	"context"
	"encoding/hex"
)

// TraceHeader is the request header of W3C Trace Context,
// https://www.w3.org/TR/trace-context-1/#traceparent-header (Recommendation of 2021-11-23).
const TraceHeader = "Traceparent"

// TraceParent is the caller's span. The zero value means none. Compare with ==.
type TraceParent struct {
	Trace [16]byte
	Span  [8]byte
	// Sampled reports whether the caller records the trace.
	Sampled bool
}

// IsZero reports whether p is empty: there is no parent.
func (p TraceParent) IsZero() bool { return p.Trace == [16]byte{} }

// Layout: version "-" trace "-" span "-" flags.
const (
	headerLength = 55
	traceAt      = 3
	spanAt       = 36
	flagsAt      = 53
	flagSampled  = 1 // the only flag that is read
)

// ParseTraceParent parses a header. Callers ignore invalid ones (ok is false). Later versions may append
// parts (section 3.2.4).
func ParseTraceParent(text string) (p TraceParent, ok bool) {
	if len(text) < headerLength || text[2] != '-' || text[spanAt-1] != '-' || text[flagsAt-1] != '-' {
		return TraceParent{}, false
	}
	version, flags := [1]byte{}, [1]byte{}
	if !lowerHex(version[:], text[:2]) || !lowerHex(p.Trace[:], text[traceAt:spanAt-1]) ||
		!lowerHex(p.Span[:], text[spanAt:flagsAt-1]) || !lowerHex(flags[:], text[flagsAt:headerLength]) {
		return TraceParent{}, false
	}
	switch {
	case version[0] == 0xff, version[0] == 0 && len(text) != headerLength, len(text) > headerLength && text[headerLength] != '-',
		p.Trace == [16]byte{}, p.Span == [8]byte{}:
		return TraceParent{}, false
	}
	p.Sampled = flags[0]&flagSampled != 0
	return p, true
}

func lowerHex(to []byte, text string) bool {
	for _, c := range []byte(text) {
		if c >= 'A' && c <= 'F' {
			return false
		}
	}
	_, err := hex.Decode(to, []byte(text))
	return err == nil
}

// String returns the header value, or "" for none.
func (p TraceParent) String() string {
	if p.IsZero() {
		return ""
	}
	flags := "-00"
	if p.Sampled {
		flags = "-01"
	}
	return "00-" + hex.EncodeToString(p.Trace[:]) + "-" + hex.EncodeToString(p.Span[:]) + flags
}

type traceParentKey struct{}

// WithTraceParent returns a context with the caller's span.
func WithTraceParent(ctx context.Context, p TraceParent) context.Context {
	if p.IsZero() {
		return ctx
	}
	return context.WithValue(ctx, traceParentKey{}, p)
}

// TraceParentFrom returns the span set by WithTraceParent, or none.
func TraceParentFrom(ctx context.Context) TraceParent {
	p, _ := ctx.Value(traceParentKey{}).(TraceParent)
	return p
}
