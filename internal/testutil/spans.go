package testutil

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// Collector receives spans. Its methods may be used concurrently.
type Collector struct {
	collectorpb.UnimplementedTraceServiceServer

	// HTTP and GRPC are where it listens, as endpoints of traces.Options.
	HTTP, GRPC string

	mu       sync.Mutex // guards the following fields
	requests []*collectorpb.ExportTraceServiceRequest
	headers  []map[string]string
	arrived  chan struct{} // closed and replaced by each request
}

// OpenCollector opens a collector until the end of the test.
func OpenCollector(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{arrived: make(chan struct{})}
	byHTTP, byGRPC := listen(t), listen(t)
	c.HTTP, c.GRPC = "http://"+byHTTP.Addr().String(), "http://"+byGRPC.Addr().String()
	web := &http.Server{Handler: http.HandlerFunc(c.post)}
	rpc := grpc.NewServer()
	collectorpb.RegisterTraceServiceServer(rpc, c)
	var serving sync.WaitGroup
	serving.Go(func() { _ = web.Serve(byHTTP) })
	serving.Go(func() { _ = rpc.Serve(byGRPC) })
	t.Cleanup(func() {
		_ = web.Close()
		rpc.Stop()
		serving.Wait()
	})
	return c
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// post receives spans by HTTP: https://opentelemetry.io/docs/specs/otlp/#otlphttp-request.
func (c *Collector) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var in collectorpb.ExportTraceServiceRequest
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" ||
		r.Header.Get("Content-Type") != "application/x-protobuf" || err != nil || proto.Unmarshal(body, &in) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	headers := map[string]string{}
	for key := range r.Header {
		headers[strings.ToLower(key)] = r.Header.Get(key)
	}
	c.take(&in, headers)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// Export receives spans by gRPC.
func (c *Collector) Export(ctx context.Context,
	in *collectorpb.ExportTraceServiceRequest) (*collectorpb.ExportTraceServiceResponse, error) {
	headers := map[string]string{}
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		for key, values := range md {
			headers[key] = strings.Join(values, ",")
		}
	}
	c.take(in, headers)
	return &collectorpb.ExportTraceServiceResponse{}, nil
}

func (c *Collector) take(in *collectorpb.ExportTraceServiceRequest, headers map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests, c.headers = append(c.requests, in), append(c.headers, headers)
	close(c.arrived)
	c.arrived = make(chan struct{})
}

// Requests returns the requests so far and the headers of each, with lower-case names.
func (c *Collector) Requests() ([]*collectorpb.ExportTraceServiceRequest, []map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.requests), slices.Clone(c.headers)
}

// Spans returns the spans received so far.
func (c *Collector) Spans() []*tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return spansOf(c.requests)
}

func spansOf(requests []*collectorpb.ExportTraceServiceRequest) (all []*tracepb.Span) {
	for _, r := range requests {
		all = append(all, SpansOf(r.GetResourceSpans())...)
	}
	return all
}

// SpansOf returns the spans of a request.
func SpansOf(all []*tracepb.ResourceSpans) (spans []*tracepb.Span) {
	for _, r := range all {
		for _, s := range r.GetScopeSpans() {
			spans = append(spans, s.GetSpans()...)
		}
	}
	return spans
}

// Wait waits until enough returns true for the spans received so far, and returns them.
func (c *Collector) Wait(t testing.TB, enough func([]*tracepb.Span) bool) []*tracepb.Span {
	t.Helper()
	for {
		c.mu.Lock()
		spans, arrived := spansOf(c.requests), c.arrived
		c.mu.Unlock()
		if enough(spans) {
			return spans
		}
		select {
		case <-arrived:
		case <-t.Context().Done():
			t.Fatalf("the collector has only got\n%s", Trees(spans))
		}
	}
}

// Trees shows spans as trees. Traces and children are in the order of their start times. Each span has its name, its
// kind unless it is internal, its error, its attributes except those in leave, its events and its links.
func Trees(spans []*tracepb.Span, leave ...string) string {
	spans = slices.Clone(spans)
	slices.SortStableFunc(spans, func(a, b *tracepb.Span) int {
		return cmp.Or(cmp.Compare(a.GetStartTimeUnixNano(), b.GetStartTimeUnixNano()),
			-cmp.Compare(a.GetEndTimeUnixNano(), b.GetEndTimeUnixNano()))
	})
	s := shower{leave: leave, known: map[string]*tracepb.Span{}, below: map[string][]*tracepb.Span{}, trace: map[string]int{}}
	var roots []*tracepb.Span
	for _, one := range spans {
		s.known[string(one.GetSpanId())] = one
	}
	for _, one := range spans {
		if parent := string(one.GetParentSpanId()); s.known[parent] != nil {
			s.below[parent] = append(s.below[parent], one)
		} else {
			roots = append(roots, one)
		}
		if id := string(one.GetTraceId()); s.trace[id] == 0 {
			s.trace[id] = len(s.trace) + 1
		}
	}
	for _, root := range roots {
		fmt.Fprintf(&s.to, "trace %d", s.trace[string(root.GetTraceId())])
		if len(root.GetParentSpanId()) > 0 {
			fmt.Fprintf(&s.to, ", below a foreign span (%s)", hex.EncodeToString(root.GetParentSpanId()))
		}
		s.to.WriteByte('\n')
		s.show(root, "  ")
	}
	return s.to.String()
}

type shower struct {
	to    strings.Builder
	leave []string
	known map[string]*tracepb.Span   // by id
	below map[string][]*tracepb.Span // by the id of the parent
	trace map[string]int             // by id
}

func (s *shower) show(one *tracepb.Span, indent string) {
	fmt.Fprintf(&s.to, "%s%s", indent, one.GetName())
	if k := one.GetKind(); k != tracepb.Span_SPAN_KIND_INTERNAL {
		s.to.WriteString(" " + strings.ToLower(strings.TrimPrefix(k.String(), "SPAN_KIND_")))
	}
	if one.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR {
		s.to.WriteString(" FAILED")
	}
	s.attributes(one.GetAttributes())
	s.to.WriteByte('\n')
	for _, e := range one.GetEvents() {
		s.to.WriteString(indent + "  ! " + e.GetName())
		s.attributes(e.GetAttributes())
		s.to.WriteByte('\n')
	}
	for _, l := range one.GetLinks() {
		s.to.WriteString(indent + "  -> ")
		if to := s.known[string(l.GetSpanId())]; to != nil {
			fmt.Fprintf(&s.to, "%s of trace %d", to.GetName(), s.trace[string(l.GetTraceId())])
		} else {
			s.to.WriteString("a span that is not here")
		}
		s.attributes(l.GetAttributes())
		s.to.WriteByte('\n')
	}
	for _, child := range s.below[string(one.GetSpanId())] {
		s.show(child, indent+"  ")
	}
}

func (s *shower) attributes(all []*commonpb.KeyValue) {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b *commonpb.KeyValue) int { return strings.Compare(a.GetKey(), b.GetKey()) })
	for _, a := range all {
		if !slices.Contains(s.leave, a.GetKey()) {
			fmt.Fprintf(&s.to, " %s=%s", a.GetKey(), SpanValue(a.GetValue()))
		}
	}
}

// SpanValue returns the value of an attribute as text.
func SpanValue(v *commonpb.AnyValue) string {
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return v.StringValue
	case *commonpb.AnyValue_ArrayValue:
		var all []string
		for _, one := range v.ArrayValue.GetValues() {
			all = append(all, SpanValue(one))
		}
		return "[" + strings.Join(all, " ") + "]"
	case *commonpb.AnyValue_IntValue:
		return fmt.Sprint(v.IntValue)
	case *commonpb.AnyValue_DoubleValue:
		return fmt.Sprint(v.DoubleValue)
	case *commonpb.AnyValue_BoolValue:
		return fmt.Sprint(v.BoolValue)
	}
	return ""
}
