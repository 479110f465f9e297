package traces

import (
	"crypto/rand"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"voicegw/protocol"
)

type place struct {
	trace [16]byte
	span  [8]byte
}

func (p place) isZero() bool { return p.trace == [16]byte{} }

func (p place) below() place { return place{p.trace, newSpanID()} }

func newPlace(parent protocol.TraceParent) place {
	if !parent.IsZero() {
		return place{parent.Trace, newSpanID()}
	}
	p := place{span: newSpanID()}
	rand.Read(p.trace[:]) // it never fails: crypto/rand ends the program instead
	return p
}

func newSpanID() (id [8]byte) {
	rand.Read(id[:])
	return id
}

// The kinds of spans: server for a client's request, client for a request to a model.
const (
	internal = trace.SpanKindInternal
	server   = trace.SpanKindServer
	client   = trace.SpanKindClient
)

type span struct {
	at         place
	parent     [8]byte // zero for the root of a trace
	name       string
	kind       trace.SpanKind
	begun, end time.Time
	attributes attributes
	events     []event
	links      []link
	failed     string // the type of its error; empty after success
}

type event struct {
	at         time.Time
	name       string
	attributes attributes
}

// link leads to a span of another trace.
type link struct {
	to   place
	what string // a value of keyLinkTo
}

const (
	linkSession  = "session"  // the start of the turn's session
	linkQuestion = "question" // the call that asked the user
	linkBefore   = "before"   // the start of the session on its previous node
)

// attributes collects attributes. Its methods skip empty texts, zeros and false.
type attributes []attribute.KeyValue

func texts(pairs ...string) (a attributes) {
	a.text(pairs...)
	return a
}

// text adds keys, each followed by its value.
func (a *attributes) text(pairs ...string) {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			*a = append(*a, attribute.String(pair[0], pair[1]))
		}
	}
}

func (a *attributes) number(key string, value int64) {
	if value != 0 {
		*a = append(*a, attribute.Int64(key, value))
	}
}

// ms adds a duration, even 0 ms.
func (a *attributes) ms(key string, d time.Duration) {
	*a = append(*a, attribute.Int64(key, d.Milliseconds()))
}

func (a *attributes) truth(key string, value bool) {
	if value {
		*a = append(*a, attribute.Bool(key, true))
	}
}

func (a *attributes) texts(key string, values []string) {
	if len(values) > 0 {
		*a = append(*a, attribute.StringSlice(key, values))
	}
}
