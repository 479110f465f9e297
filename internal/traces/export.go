package traces

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// dial returns a client of the collector, which connects with the first spans. Empty options are from the environment.
func dial(o Options) otlptrace.Client {
	if o.Protocol == GRPC {
		all := []otlptracegrpc.Option{
			otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{Enabled: true, InitialInterval: firstRetry,
				MaxInterval: lastRetry, MaxElapsedTime: sendTime}),
		}
		if o.Endpoint != "" {
			all = append(all, otlptracegrpc.WithEndpointURL(o.Endpoint))
		}
		if len(o.Headers) > 0 {
			all = append(all, otlptracegrpc.WithHeaders(o.Headers))
		}
		return otlptracegrpc.NewClient(all...)
	}
	all := []otlptracehttp.Option{
		otlptracehttp.WithProxy(proxyUnlessRedirected),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: firstRetry, MaxInterval: lastRetry,
			MaxElapsedTime: sendTime}),
	}
	if o.Endpoint != "" {
		all = append(all, otlptracehttp.WithEndpointURL(strings.TrimSuffix(strings.TrimRight(o.Endpoint, "/"), signalPath)+signalPath))
	}
	if len(o.Headers) > 0 {
		all = append(all, otlptracehttp.WithHeaders(o.Headers))
	}
	return otlptracehttp.NewClient(all...)
}

var errRedirect = errors.New("the collector redirects; name its final URL in traces.endpoint")

// proxyUnlessRedirected refuses redirects, which would send secret headers to another host. There is no other hook.
func proxyUnlessRedirected(r *http.Request) (*url.URL, error) {
	if r.Response != nil {
		return nil, errRedirect
	}
	return http.ProxyFromEnvironment(r)
}

type outbox struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	to       sdktrace.SpanExporter
	logger   *slog.Logger
	// patience bounds each request to the collector; close calls its cancel.
	patience func() context.Context
	cancel   context.CancelFunc

	mu                             sync.Mutex // guards the following fields
	waiting, sent, failed, dropped int64
	closed                         bool

	away bool // the last batch failed; owned by ExportSpans, which the SDK never calls concurrently
}

func newOutbox(o Options) (*outbox, error) {
	ctx, cancel := context.WithCancel(context.Background())
	b := &outbox{logger: o.Logger, patience: func() context.Context { return ctx }, cancel: cancel}
	var self []attribute.KeyValue
	for key, value := range o.Resource {
		self = append(self, attribute.String(key, value))
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(self...), resource.WithFromEnv())
	if err != nil {
		cancel()
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	collector := o.Client
	if collector == nil {
		collector = dial(o)
	}
	if b.to, err = otlptrace.New(ctx, collector); err != nil {
		cancel()
		return nil, fmt.Errorf("traces: %w", err)
	}
	b.provider = sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithIDGenerator(places{}), sdktrace.WithResource(about),
		sdktrace.WithBatcher(b, sdktrace.WithMaxQueueSize(queueSpans), sdktrace.WithMaxExportBatchSize(batchSpans),
			sdktrace.WithBatchTimeout(o.pause), sdktrace.WithExportTimeout(sendTime)),
	)
	b.tracer = b.provider.Tracer("voicegw/internal/traces", trace.WithInstrumentationVersion(o.Version),
		trace.WithInstrumentationAttributes(attribute.String("voicegw.gen_ai.conventions", ConventionsVersion)))
	return b, nil
}

// put queues all of the spans or none, without waiting. The batch processor's queue has room for them.
func (b *outbox) put(spans []span) {
	n := int64(len(spans))
	b.mu.Lock()
	room := !b.closed && b.waiting+n <= queueSpans
	if !room {
		b.dropped += n
		b.mu.Unlock()
		return
	}
	b.waiting += n
	b.mu.Unlock()
	for i := range spans {
		spans[i].record(b.tracer)
	}
}

// ExportSpans sends a batch for the batch processor. It counts failed spans, and logs the first of several failures.
func (b *outbox) ExportSpans(ctx context.Context, batch []sdktrace.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(b.patience(), cancel)
	defer stop()
	err := b.to.ExportSpans(ctx, batch)
	n := int64(len(batch))
	b.mu.Lock()
	b.waiting -= n
	if err != nil {
		b.failed += n
	} else {
		b.sent += n
	}
	b.mu.Unlock()
	if failed := err != nil; failed != b.away {
		b.away = failed
		if failed {
			b.logger.Warn("cannot send spans; they are dropped and counted", "error", err)
		} else {
			b.logger.Info("sending spans again")
		}
	}
	return nil // the batch processor would log each one
}

func (b *outbox) Shutdown(ctx context.Context) error { return b.to.Shutdown(ctx) }

// close sends the waiting spans until ctx is done, and closes the connections.
func (b *outbox) close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	stop := context.AfterFunc(ctx, b.cancel) // then the remaining batches fail at once
	defer stop()
	err := b.provider.Shutdown(context.WithoutCancel(ctx))
	b.cancel()
	b.mu.Lock()
	b.dropped, b.waiting = b.dropped+b.waiting, 0
	b.mu.Unlock()
	if err != nil {
		return fmt.Errorf("traces: close the connection to the collector: %w", err)
	}
	return nil
}

// places gives a span the ids of the place in its context.
type places struct{}

type placeKey struct{}

func (places) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	at, _ := ctx.Value(placeKey{}).(place)
	return at.trace, at.span
}

func (places) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	at, _ := ctx.Value(placeKey{}).(place)
	return at.span
}

func (s *span) record(tracer trace.Tracer) {
	ctx := context.WithValue(context.Background(), placeKey{}, s.at)
	if s.parent != [8]byte{} {
		ctx = trace.ContextWithRemoteSpanContext(ctx, place{s.at.trace, s.parent}.context())
	}
	links := make([]trace.Link, 0, len(s.links))
	for _, l := range s.links {
		links = append(links, trace.Link{SpanContext: l.to.context(),
			Attributes: []attribute.KeyValue{attribute.String(keyLinkTo, l.what)}})
	}
	_, out := tracer.Start(ctx, s.name, trace.WithTimestamp(s.begun), trace.WithSpanKind(s.kind),
		trace.WithAttributes(s.attributes...), trace.WithLinks(links...))
	for _, e := range s.events {
		out.AddEvent(e.name, trace.WithTimestamp(e.at), trace.WithAttributes(e.attributes...))
	}
	if s.failed != "" {
		out.SetAttributes(attribute.String(keyError, s.failed))
		out.SetStatus(codes.Error, s.failed)
	}
	if s.end.Before(s.begun) {
		s.end = s.begun
	}
	out.End(trace.WithTimestamp(s.end))
}

// context returns the place as the context of a sampled span.
func (p place) context() trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: p.trace, SpanID: p.span, TraceFlags: trace.FlagsSampled})
}

const (
	// firstRetry and lastRetry are the shortest and the longest pause before a refused batch is sent again.
	firstRetry = time.Second
	lastRetry  = 5 * time.Second

	signalPath = "/v1/traces"
)
