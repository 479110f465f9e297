// Package traces sends spans of turns to an OpenTelemetry collector. When a turn is over, it decides whether to keep it
// and makes its spans. The SDK's batch processor sends them; beyond its queue they are dropped and counted, so sessions
// never wait. No span is longer than a turn; links and voicegw.session.id connect the turns of a session.
package traces

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

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
	// Headers are sent with each request and secret. Nil means those of the environment.
	Headers map[string]string
	Ratio   float64
	// Slow is the longest time to the first sound or text; slower turns are kept. Zero means setting.SlowAnswer.
	Slow time.Duration
	// Content adds the users' and models' words and the arguments and answers of tools.
	Content  bool
	Resource map[string]string
	Version  string // of the program
	Logger   *slog.Logger
	// Client replaces the client of Endpoint, for tests. Nil means no replacement.
	Client otlptrace.Client

	pause time.Duration // after which less than a batch is sent; zero means batchPause
}

const (
	queueSpans = 2048 // that may wait
	batchSpans = 512  // sent at once
	batchPause = 2 * time.Second
	sendTime   = 30 * time.Second
)

func (o Options) withDefaults() Options {
	o.Protocol, o.Slow = cmp.Or(o.Protocol, HTTP), cmp.Or(o.Slow, setting.SlowAnswer)
	o.pause = cmp.Or(o.pause, batchPause)
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

// Know sets the voice models by provider, and the chat model, before Voice and Text.
func (t *Traces) Know(voices map[string]Model, chat Model) { t.voices, t.chat = voices, chat }

// Close sends the waiting spans until ctx is done and drops the rest. It may be called once, also on a nil Traces.
func (t *Traces) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.out.close(ctx)
}

// Stats are counters since New.
type Stats struct {
	// Sent spans were accepted, Failed ones not; Dropped ones had no room in the queue, which holds Waiting ones.
	Sent, Failed, Dropped, Waiting int64
	Decided                        map[Decision]int64
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
	t.out.mu.Lock()
	defer t.out.mu.Unlock()
	s.Sent, s.Failed, s.Dropped, s.Waiting = t.out.sent, t.out.failed, t.out.dropped, t.out.waiting
	return s
}

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

// finish decides about a turn and the spans before it in its trace, and queues them. It does not block.
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

// parent returns the parent for other programs' spans. It is sampled if its trace is certain to be kept.
func (t *Traces) parent(at place, caller bool) protocol.TraceParent {
	return protocol.TraceParent{Trace: at.trace, Span: at.span, Sampled: caller || t.sample.drawn(at.trace)}
}

// Decision is the reason for keeping spans, or NotKept.
type Decision string

// The decisions.
const (
	KeptFailed Decision = "failed" // the turn, the start of the session or the move failed
	KeptTool   Decision = "tool"   // a tool failed
	KeptSlow   Decision = "slow"   // the first sound or text came late
	KeptOdd    Decision = "odd"    // the gateway asked a silent model again, or the connection to it broke
	KeptCaller Decision = "caller" // the caller keeps its part of the trace
	KeptRatio  Decision = "ratio"  // the trace was drawn
	NotKept    Decision = "none"
)

// Decisions returns all of them.
func Decisions() []Decision {
	return []Decision{KeptFailed, KeptTool, KeptSlow, KeptOdd, KeptCaller, KeptRatio, NotKept}
}

type facts struct {
	failed, tool, odd bool
	caller            bool          // the caller keeps the parent span
	first             time.Duration // until the first sound or text; zero if there was none
}

type sampler struct {
	slow  time.Duration
	ratio sdktrace.Sampler
}

func newSampler(ratio float64, slow time.Duration) sampler {
	return sampler{slow: slow, ratio: sdktrace.TraceIDRatioBased(ratio)}
}

// drawn reports whether a trace is always kept. Its id decides, so that all gateways keep the same traces.
func (s sampler) drawn(trace [16]byte) bool {
	return s.ratio.ShouldSample(sdktrace.SamplingParameters{TraceID: trace}).Decision == sdktrace.RecordAndSample
}

func (s sampler) decide(trace [16]byte, f facts) Decision {
	switch {
	case f.failed:
		return KeptFailed
	case f.tool:
		return KeptTool
	case f.first > s.slow:
		return KeptSlow
	case f.odd:
		return KeptOdd
	case f.caller:
		return KeptCaller
	case s.drawn(trace):
		return KeptRatio
	}
	return NotKept
}

// Environment returns a variable, or "". Its methods read those of
// https://opentelemetry.io/docs/specs/otel/protocol/exporter/ (read 2026-11-25) that the SDK leaves to the program.
type Environment func(name string) string

// Disabled reports whether OTEL_SDK_DISABLED turns traces off; it overrides the settings.
func (e Environment) Disabled() bool { return strings.EqualFold(e("OTEL_SDK_DISABLED"), "true") }

// exporter returns a variable of exporters and its name; the one for traces has priority.
func (e Environment) exporter(name string) (value, from string) {
	from = "OTEL_EXPORTER_OTLP_TRACES_" + name
	if value = e(from); value == "" {
		from = "OTEL_EXPORTER_OTLP_" + name
		value = e(from)
	}
	return strings.TrimSpace(value), from
}

// Headers returns the headers of the environment. They are secrets, so the error shows no value.
func (e Environment) Headers() (map[string]string, error) {
	value, from := e.exporter("HEADERS")
	headers, err := setting.ParsePairs(value)
	if err != nil {
		return nil, fmt.Errorf("%s %w", from, err)
	}
	return headers, nil
}

// Complete fills in the protocol and the headers from the environment, and the endpoint if the environment has none.
func (e Environment) Complete(o *Options) error {
	if o.Protocol == "" {
		switch value, from := e.exporter("PROTOCOL"); value {
		case "", "http/protobuf":
			o.Protocol = HTTP
		case "grpc":
			o.Protocol = GRPC
		default:
			return fmt.Errorf("%s must be http/protobuf or grpc", from)
		}
	}
	if value, _ := e.exporter("ENDPOINT"); value == "" && o.Endpoint == "" {
		o.Endpoint = map[Protocol]string{HTTP: "http://localhost:4318", GRPC: "http://localhost:4317"}[o.Protocol]
	}
	if len(o.Headers) > 0 {
		return nil
	}
	headers, err := e.Headers()
	o.Headers = headers
	return err
}
