package traces

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc/credentials"

	"voicegw/internal/bounded"
)

// How often a batch that was refused for a moment is sent again.
const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Second
)

// collector is a collector behind OTLP.
type collector struct {
	otlptrace.Client
	// idle closes the connections that the client keeps.
	idle func()
}

// Stop implements Sender.
func (c collector) Stop(ctx context.Context) error {
	err := c.Client.Stop(ctx)
	c.idle()
	return err
}

// dial returns the collector of the options. It connects when there is something to send.
func dial(o Options) (Sender, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("traces: the endpoint must begin with http:// or https:// and name a host")
	}
	c := collector{idle: func() {}}
	if o.Protocol == GRPC {
		c.Client = otlptracegrpc.NewClient(overGRPC(o, u)...)
	} else {
		transport := bounded.NewTransport()
		transport.TLSClientConfig = o.TLS
		c.idle, c.Client = transport.CloseIdleConnections, otlptracehttp.NewClient(overHTTP(o, u, transport)...)
	}
	// Neither client connects now; ctx bounds nothing.
	if err := c.Start(context.Background()); err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	return c, nil
}

// overHTTP returns the options of OTLP over HTTP. Each option is given, so that no variable of the
// environment counts that Environment has not read.
func overHTTP(o Options, u *url.URL, transport *http.Transport) []otlptracehttp.Option {
	compression := otlptracehttp.NoCompression
	if o.Compress {
		compression = otlptracehttp.GzipCompression
	}
	// A redirect would carry the headers, which are secrets, elsewhere: Unfollowed takes it as the answer.
	hc := bounded.Unfollowed(bounded.Wrap(transport, bounded.Limits{}))
	hc.Timeout = o.Timeout
	return []otlptracehttp.Option{
		otlptracehttp.WithEndpointURL(u.String()), otlptracehttp.WithHTTPClient(hc), otlptracehttp.WithHeaders(o.Headers),
		otlptracehttp.WithTimeout(o.Timeout), otlptracehttp.WithCompression(compression), otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: firstRetry, MaxInterval: lastRetry, MaxElapsedTime: sendTime}),
	}
}

// overGRPC is overHTTP for OTLP over gRPC.
func overGRPC(o Options, u *url.URL) []otlptracegrpc.Option {
	all := []otlptracegrpc.Option{
		otlptracegrpc.WithEndpoint(u.Host), otlptracegrpc.WithHeaders(o.Headers), otlptracegrpc.WithTimeout(o.Timeout),
		otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{Enabled: true, InitialInterval: firstRetry, MaxInterval: lastRetry, MaxElapsedTime: sendTime}),
	}
	if o.Compress {
		all = append(all, otlptracegrpc.WithCompressor("gzip"))
	}
	if u.Scheme == "http" {
		return append(all, otlptracegrpc.WithInsecure())
	}
	trust := o.TLS
	if trust == nil {
		trust = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return append(all, otlptracegrpc.WithTLSCredentials(credentials.NewTLS(trust)))
}

// frame is what stands around the spans of each request: who sends them. It is fixed.
type frame struct {
	resource *resourcepb.Resource
	scope    *commonpb.InstrumentationScope
}

func newFrame(o Options) frame {
	f := frame{resource: &resourcepb.Resource{}, scope: &commonpb.InstrumentationScope{Name: "voicegw/internal/traces", Version: o.Version}}
	for _, key := range slices.Sorted(maps.Keys(o.Resource)) {
		f.resource.Attributes = append(f.resource.Attributes, keyValue(attribute{key, o.Resource[key]}))
	}
	f.scope.Attributes = append(f.scope.Attributes, keyValue(attribute{"voicegw.gen_ai.conventions", ConventionsVersion}))
	return f
}

// around returns spans in OTLP's form.
func (f frame) around(batch [][]span) []*tracepb.ResourceSpans {
	var all []*tracepb.Span
	for _, spans := range batch {
		for i := range spans {
			all = append(all, spans[i].otlp())
		}
	}
	return []*tracepb.ResourceSpans{{Resource: f.resource, ScopeSpans: []*tracepb.ScopeSpans{{Scope: f.scope, Spans: all}}}}
}

// The kinds of spans in OTLP.
var kinds = [...]tracepb.Span_SpanKind{
	internal: tracepb.Span_SPAN_KIND_INTERNAL, server: tracepb.Span_SPAN_KIND_SERVER, client: tracepb.Span_SPAN_KIND_CLIENT,
}

// otlp returns the span in OTLP's form.
func (s *span) otlp() *tracepb.Span {
	out := &tracepb.Span{
		TraceId: s.at.trace[:], SpanId: s.at.span[:], Name: s.name, Kind: kinds[s.kind],
		StartTimeUnixNano: nanos(s.begun), EndTimeUnixNano: max(nanos(s.end), nanos(s.begun)), Attributes: keyValues(s.attributes),
	}
	if s.parent != [8]byte{} {
		out.ParentSpanId = s.parent[:]
	}
	for _, e := range s.events {
		out.Events = append(out.Events, &tracepb.Span_Event{TimeUnixNano: nanos(e.at), Name: e.name, Attributes: keyValues(e.attributes)})
	}
	for i := range s.links {
		to := &s.links[i]
		out.Links = append(out.Links, &tracepb.Span_Link{TraceId: to.to.trace[:], SpanId: to.to.span[:], Attributes: keyValues([]attribute{{keyLinkTo, to.what}})})
	}
	if s.failed != "" {
		out.Attributes = append(out.Attributes, keyValue(attribute{keyError, s.failed}))
		out.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: s.failed}
	}
	return out
}

func nanos(t time.Time) uint64 {
	if t.IsZero() || t.UnixNano() < 0 {
		return 0
	}
	return uint64(t.UnixNano())
}

func keyValues(all []attribute) []*commonpb.KeyValue {
	out := make([]*commonpb.KeyValue, 0, len(all))
	for _, a := range all {
		out = append(out, keyValue(a))
	}
	return out
}

func keyValue(a attribute) *commonpb.KeyValue {
	v := &commonpb.AnyValue{}
	switch of := a.value.(type) {
	case string:
		v.Value = &commonpb.AnyValue_StringValue{StringValue: of}
	case int64:
		v.Value = &commonpb.AnyValue_IntValue{IntValue: of}
	case float64:
		v.Value = &commonpb.AnyValue_DoubleValue{DoubleValue: of}
	case bool:
		v.Value = &commonpb.AnyValue_BoolValue{BoolValue: of}
	case []string:
		list := &commonpb.ArrayValue{}
		for _, text := range of {
			list.Values = append(list.Values, &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: text}})
		}
		v.Value = &commonpb.AnyValue_ArrayValue{ArrayValue: list}
	}
	return &commonpb.KeyValue{Key: a.key, Value: v}
}
