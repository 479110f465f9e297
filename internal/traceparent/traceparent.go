// Package traceparent reads and writes the place of a request in a trace that spans programs: the
// header traceparent of W3C Trace Context, https://www.w3.org/TR/trace-context-1/#traceparent-header
// (Recommendation of 2021-11-23).
package traceparent

import (
	"context"
	"encoding/hex"
)

// Header is the name of the header of a request.
const Header = "Traceparent"

// Parent is a span of some program. The zero Parent means that there is no such span. It is a value: it is compared with ==.
type Parent struct {
	Trace [16]byte
	Span  [8]byte
	// Sampled says that the program with the span has kept it.
	Sampled bool
}

// IsZero reports whether p is empty: there is no parent.
func (p Parent) IsZero() bool { return p.Trace == [16]byte{} }

// The lengths of the header's parts, and where each begins: version "-" trace "-" span "-" flags.
const (
	length  = 55
	atTrace = 3
	atSpan  = 36
	atFlags = 53
	sampled = 1 // the only flag that is read
)

// Parse reads a header. ok is false for one that is not valid, which has to be ignored. A later version
// may have more parts behind these (section 3.2.4).
func Parse(text string) (p Parent, ok bool) {
	if len(text) < length || text[2] != '-' || text[atSpan-1] != '-' || text[atFlags-1] != '-' {
		return Parent{}, false
	}
	version, flags := [1]byte{}, [1]byte{}
	if !lower(version[:], text[:2]) || !lower(p.Trace[:], text[atTrace:atSpan-1]) || !lower(p.Span[:], text[atSpan:atFlags-1]) || !lower(flags[:], text[atFlags:length]) {
		return Parent{}, false
	}
	switch {
	case version[0] == 0xff, version[0] == 0 && len(text) != length, len(text) > length && text[length] != '-',
		p.Trace == [16]byte{}, p.Span == [8]byte{}:
		return Parent{}, false
	}
	p.Sampled = flags[0]&sampled != 0
	return p, true
}

// lower decodes hexadecimal digits, of which none may be in capitals.
func lower(to []byte, text string) bool {
	for _, c := range []byte(text) {
		if c >= 'A' && c <= 'F' {
			return false
		}
	}
	_, err := hex.Decode(to, []byte(text))
	return err == nil
}

// String returns the header; it is empty for none.
func (p Parent) String() string {
	if p.IsZero() {
		return ""
	}
	flags := "-00"
	if p.Sampled {
		flags = "-01"
	}
	return "00-" + hex.EncodeToString(p.Trace[:]) + "-" + hex.EncodeToString(p.Span[:]) + flags
}

type key struct{}

// With returns a context of what happens below a span.
func With(ctx context.Context, p Parent) context.Context {
	if p.IsZero() {
		return ctx
	}
	return context.WithValue(ctx, key{}, p)
}

// From returns the span that a context is below; none if With has named none.
func From(ctx context.Context) Parent {
	p, _ := ctx.Value(key{}).(Parent)
	return p
}
