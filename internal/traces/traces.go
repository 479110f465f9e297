package traces

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"

	"voicegw/config/setting"
	"voicegw/protocol"
)

// Protocol is the transport of OTLP 1 with protobuf.
type Protocol string

// The protocols.
const (
	HTTP Protocol = "http"
	GRPC Protocol = "grpc"
)

// Options configure a Traces.
type Options struct {
	// Endpoint is the collector's URL, http(s)://host:port. Empty means the endpoint of the environment.
	Endpoint string
	Protocol Protocol // empty means HTTP
	// Headers are sent with each request, such as an authorization. They are secrets. Nil means those of
	// the environment.
	Headers map[string]string
	// Ratio is the share of traces that are always kept, from 0 to 1.
	Ratio float64
	// Slow is the longest time to the first sound or text of a turn; a slower turn is kept. Zero means
	// setting.SlowAnswer.
	Slow time.Duration
	// Content adds the users' and models' words and the arguments and answers of tools.
	Content bool
	// Resource describes the gateway, such as service.name.
	Resource map[string]string
	Version  string // of the program
	// Logger gets one line when sending fails, and one when it works again. Nil means no logging.
	Logger *slog.Logger
	// Client replaces the client of Endpoint, for tests. Nil means no replacement.
	Client otlptrace.Client

	// Zero means the defaults below.
	queue int           // spans that may wait
	batch int           // spans sent at once
	pause time.Duration // after which fewer are sent
}

const (
	queueSpans = 2048
	batchSpans = 512
	batchPause = 2 * time.Second
	// sendTime bounds all attempts to send one batch.
	sendTime = 30 * time.Second
)

func (o Options) withDefaults() Options {
	o.Protocol, o.Slow = cmp.Or(o.Protocol, HTTP), cmp.Or(o.Slow, setting.SlowAnswer)
	o.queue, o.batch, o.pause = cmp.Or(o.queue, queueSpans), cmp.Or(o.batch, batchSpans), cmp.Or(o.pause, batchPause)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

// Model describes a provider and its model in spans, which leave out an empty Host and a zero Port.
type Model struct {
	// System is the conventions' name of the provider, such as openai or gcp.gemini.
	System string
	Host   string
	Port   int
	Name   string // of the model; a voice session has its own
}

// Traces makes spans and sends them. Its methods may be used concurrently, and only Close waits.
type Traces struct {
	// Fixed after Know.
	opts   Options
	sample sampler
	voices map[string]Model // by the provider's name
	chat   Model

	out     *outbox
	decided map[Decision]*atomic.Int64
}

// New returns a Traces. The collector may start later.
func New(o Options) (*Traces, error) {
	o = o.withDefaults()
	t := &Traces{opts: o, sample: newSampler(o.Ratio, o.Slow), decided: map[Decision]*atomic.Int64{}}
	for _, d := range Decisions() {
		t.decided[d] = new(atomic.Int64)
	}
	var err error
	if t.out, err = newOutbox(o); err != nil {
		return nil, err
	}
	return t, nil
}

// Know sets the providers of voice models, by their names, and the chat model. The caller must call it before Voice and
// Text.
func (t *Traces) Know(voices map[string]Model, chat Model) { t.voices, t.chat = voices, chat }

// Close sends the waiting spans until ctx is done; it drops and counts the rest. It may be called once, also on a nil
// Traces.
func (t *Traces) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.out.close(ctx)
}

// Stats are counters since New.
type Stats struct {
	// The collector has accepted Sent spans and not Failed ones; the queue had no room for Dropped ones and holds
	// Waiting ones.
	Sent, Failed, Dropped, Waiting int64
	// Decided counts turns and other groups of spans.
	Decided map[Decision]int64
}

// Stats returns the counters; those of a nil Traces are zero.
func (t *Traces) Stats() Stats {
	s := Stats{Decided: map[Decision]int64{}}
	if t == nil {
		return s
	}
	for d, n := range t.decided {
		s.Decided[d] = n.Load()
	}
	s.Sent, s.Failed, s.Dropped, s.Waiting = t.out.stats()
	return s
}

// decide decides whether the spans of a trace are kept, and counts the decision.
func (t *Traces) decide(trace [16]byte, f facts) Decision {
	d := t.sample.decide(trace, f)
	t.decided[d].Add(1)
	return d
}

// keep decides about spans and queues those to keep. It does not block.
func (t *Traces) keep(spans []span, f facts) {
	if d := t.decide(spans[0].at.trace, f); d != NotKept {
		spans[0].attributes = append(spans[0].attributes, attribute.String(keyKept, string(d)))
		t.out.put(spans)
	}
}

// finish decides about a finished turn and the spans before it in the same trace, and queues them if they are kept. It
// does not block.
func (t *Traces) finish(is *turn, before []span, who about, now time.Time) {
	f := is.facts
	for _, k := range is.calls {
		f.tool = f.tool || k.failedTool()
	}
	d := t.decide(is.at.trace, f)
	if d == NotKept {
		return // without making the spans
	}
	is.attributes.text(keyKept, string(d))
	t.out.put(append(before, is.spans(who, t.opts.Content, now)...))
}

// parent returns the parent of spans below a span, for other programs. It is sampled if its trace is certain to be
// kept.
func (t *Traces) parent(at place, caller bool) protocol.TraceParent {
	return protocol.TraceParent{Trace: at.trace, Span: at.span, Sampled: caller || t.sample.drawn(at.trace)}
}
