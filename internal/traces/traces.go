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

// Protocol is how spans travel to the collector.
type Protocol string

// The protocols, both of OTLP 1 with protobuf.
const (
	HTTP Protocol = "http"
	GRPC Protocol = "grpc"
)

// Options configure a Traces.
type Options struct {
	// Endpoint is where the collector is: http(s)://host:port. Empty means that the environment has it.
	Endpoint string
	// Protocol is HTTP if it is empty.
	Protocol Protocol
	// Headers are sent with each request, such as an authorization. They are secrets. Nil means those of
	// the environment.
	Headers map[string]string
	// Ratio is the share of traces that are kept although nothing is special about them, from 0 to 1.
	Ratio float64
	// Slow is how long the first sound, or the first text, of a turn may take before the turn is kept
	// because of that. Zero means defaults.SlowAnswer.
	Slow time.Duration
	// Content also tells what was said, and what tools were given and have answered.
	Content bool
	// Resource describes the gateway, such as service.name.
	Resource map[string]string
	// Version is that of the program.
	Version string
	// Logger is told once when spans cannot be sent, and once when they can be again. Nil means no
	// logging.
	Logger *slog.Logger
	// Client replaces the collector at Endpoint, for tests. Nil means the one at Endpoint.
	Client otlptrace.Client

	// queue is how many spans may wait; batch how many are sent at once, pause how long a smaller number
	// waits for more. Zero means the defaults below.
	queue, batch int
	pause        time.Duration
}

// The defaults of Options, and what the queue is bounded by.
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

// Model is what is told of a provider and its model.
type Model struct {
	// System is the conventions' name of the provider, such as openai or gcp.gemini.
	System string
	// Host and Port are where the model is. Empty and 0 are not told.
	Host string
	Port int
	// Name is that of the model; for voice, the session knows it.
	Name string
}

// Traces makes spans and sends them. Its methods may be used concurrently, and none but Close waits.
type Traces struct {
	// Fixed after Know.
	opts   Options
	sample sampler
	voices map[string]Model // by the provider's name
	chat   Model

	out     *outbox
	decided map[Decision]*atomic.Int64
}

// New returns a Traces. It does not wait for the collector, which may come later.
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

// Know tells what is said of the providers of voice models, by their names, and of the chat model. It must
// be called before anything is followed.
func (t *Traces) Know(voices map[string]Model, chat Model) { t.voices, t.chat = voices, chat }

// Close sends what waits, until ctx is done, and ends. What then still waits is dropped and counted. It is
// called once. A nil Traces has nothing to close.
func (t *Traces) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.out.close(ctx)
}

// Stats counts what has happened so far.
type Stats struct {
	// Sent, Failed and Dropped are spans that the collector has taken, that it has not, and for which
	// there was no room. Waiting are those in the queue.
	Sent, Failed, Dropped, Waiting int64
	// Decided are turns, and other groups of spans, by what was decided.
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

// decide decides whether the spans of a trace are kept.
func (t *Traces) decide(trace [16]byte, f facts) Decision {
	d := t.sample.decide(trace, f)
	t.decided[d].Add(1)
	return d
}

// keep decides about spans, and sends them if they are kept. It does not block.
func (t *Traces) keep(spans []span, f facts) {
	if d := t.decide(spans[0].at.trace, f); d != NotKept {
		spans[0].attributes = append(spans[0].attributes, attribute.String(keyKept, string(d)))
		t.out.put(spans)
	}
}

// finish decides about a turn that is over, and about the spans before it in the same trace, and sends them if
// they are kept. It does not block.
func (t *Traces) finish(is *turn, before []span, who about, now time.Time) {
	f := is.facts
	for _, k := range is.calls {
		f.tool = f.tool || k.failedTool()
	}
	d := t.decide(is.at.trace, f)
	if d == NotKept {
		return // its spans are not even made
	}
	is.attributes.text(keyKept, string(d))
	t.out.put(append(before, is.spans(who, t.opts.Content, now)...))
}

// parent returns how a span is named to whoever goes on below it. Whether it will be kept is not known yet:
// it is said to be if it will be whatever happens.
func (t *Traces) parent(at place, caller bool) protocol.TraceParent {
	return protocol.TraceParent{Trace: at.trace, Span: at.span, Sampled: caller || t.sample.drawn(at.trace)}
}
