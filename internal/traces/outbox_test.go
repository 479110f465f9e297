package traces

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/protocol"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"voicegw/internal/testutil"
	"voicegw/session"
)

// nasty is a collector in memory that misbehaves.
type nasty struct {
	hangs   bool          // each request, until the sender's timeout
	refuses bool          // each request
	slow    time.Duration // for each request
	tries   atomic.Int64
	stopped atomic.Bool
}

func (n *nasty) UploadTraces(ctx context.Context, _ []*tracepb.ResourceSpans) error {
	n.tries.Add(1)
	if n.hangs {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	if n.slow > 0 {
		select {
		case <-time.After(n.slow):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if n.refuses {
		return errRefused
	}
	return nil
}

func (n *nasty) Start(context.Context) error { return nil }

func (n *nasty) Stop(context.Context) error {
	n.stopped.Store(true)
	return nil
}

// pass advances time in a synctest bubble.
func pass(d time.Duration) { <-time.After(d) }

// oneSpan is a span alone.
func oneSpan() []span {
	return []span{{at: newPlace(protocol.TraceParent{}), name: "x", begun: epoch, end: epoch.Add(time.Second)}}
}

// TestCollectorNeverBlocks: with any collector, recording spans takes no time, unsent spans are limited and counted, and
// so is the time of the end.
func TestCollectorNeverBlocks(t *testing.T) {
	for name, c := range map[string]struct {
		nasty        *nasty
		sent, failed bool
	}{
		"hangs":   {&nasty{hangs: true}, false, true},
		"refuses": {&nasty{refuses: true}, false, true},
		"slow":    {&nasty{slow: 7 * time.Second}, true, true},
		"good":    {&nasty{}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log strings.Builder
				tr := open(t, Options{Ratio: 1, Client: c.nasty, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				const all = 20_000
				began := time.Now()
				for i := range all {
					tr.keep(oneSpan(), facts{})
					if i%100 == 99 {
						if took := time.Since(began); took != 0 {
							t.Fatalf("recording spans took %v", took)
						}
						pass(time.Second)
						began = time.Now()
					}
					if s := tr.Stats(); s.Waiting > queueSpans {
						t.Fatalf("%d spans wait", s.Waiting)
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				began = time.Now()
				if err := tr.Close(ctx); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("the end took %v", took)
				}
				s := tr.Stats()
				if s.Sent+s.Failed+s.Dropped != all || s.Waiting != 0 || s.Decided[KeptRatio] != all {
					t.Errorf("%+v: the sum is not %d", s, all)
				}
				if (s.Sent > 0) != c.sent || !c.failed && s.Failed+s.Dropped > 0 || c.failed && s.Failed+s.Dropped == 0 || !c.nasty.stopped.Load() {
					t.Errorf("%+v", s)
				}
				if n := strings.Count(log.String(), "cannot send spans"); n > 1 || n == 0 && !c.sent || n > 0 && !c.failed {
					t.Errorf("the log has it %d times:\n%s", n, &log)
				}
			})
		})
	}
}

// TestClosedAtOnce: Close without spans returns at once, a span after it is dropped, and nil Traces can be closed.
func TestClosedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := open(t, Options{Ratio: 1, Client: &nasty{}})
		if err := tr.Close(t.Context()); err != nil {
			t.Error(err)
		}
		tr.keep(oneSpan(), facts{})
		if s := tr.Stats(); s.Dropped != 1 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
	})
	var none *Traces
	if err := none.Close(t.Context()); err != nil || none.Stats().Sent != 0 {
		t.Error("nil Traces have sent spans or an error")
	}
}

// TestBatches: spans that end at about the same time are sent together, and a tree is not split.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &nasty{}
		tr := open(t, Options{Ratio: 1, Client: n})
		for range 10 {
			tr.keep(oneSpan(), facts{})
			pass(100 * time.Millisecond)
		}
		if n.tries.Load() != 0 {
			t.Error("spans do not wait for others")
		}
		pass(batchPause)
		synctest.Wait()
		if n.tries.Load() != 1 || tr.Stats().Sent != 10 {
			t.Errorf("%d requests for %d spans", n.tries.Load(), tr.Stats().Sent)
		}
		for range batchSpans { // enough for a batch without waiting
			tr.keep(oneSpan(), facts{})
		}
		synctest.Wait()
		if n.tries.Load() != 2 {
			t.Errorf("%d requests", n.tries.Load())
		}
		if err := tr.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestOverSockets sends a conversation to a collector by both protocols.
func TestOverSockets(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "5000")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	for _, protocol := range []Protocol{HTTP, GRPC} {
		for _, from := range []string{"settings", "environment"} {
			c := testutil.OpenCollector(t)
			endpoint := c.HTTP
			if protocol == GRPC {
				endpoint = c.GRPC
			}
			o := Options{Protocol: protocol, Ratio: 1, Version: "1.2.3", Resource: map[string]string{"service.name": "gateway"}}
			if from == "settings" {
				o.Endpoint, o.Headers = endpoint, map[string]string{"authorization": "Bearer cherry"}
			} else {
				t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
				t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20cherry")
			}
			tr := open(t, o)
			k := begin(t, tr, session.Opening{})
			conversations["tool_call"](t, k)
			k.ends()
			if err := tr.Close(t.Context()); err != nil {
				t.Error(err)
			}
			golden(t, "tool_call", testutil.Trees(c.Spans(), keyOperation, keyToolType, keyMode, keyAgent, keySession, keyConversation, keyServer, keyPort, keyProvider, keyModel))
			requests, headers := c.Requests()
			if len(requests) != 1 || headers[0]["authorization"] != "Bearer cherry" {
				t.Fatalf("%s: %d requests, with %v", protocol, len(requests), headers)
			}
			sent := requests[0].GetResourceSpans()[0]
			if r := sent.GetResource().String(); !strings.Contains(r, "service.name") || !strings.Contains(r, "gateway") || !strings.Contains(r, "deployment.environment.name") {
				t.Errorf("%s: the resource is %v", protocol, r)
			}
			if s := sent.GetScopeSpans()[0].GetScope(); s.GetVersion() != "1.2.3" || testutil.SpanValue(s.GetAttributes()[0].GetValue()) != ConventionsVersion {
				t.Errorf("%s: the scope is %v", protocol, s)
			}
			if s := tr.Stats(); s.Sent != int64(len(c.Spans())) || s.Failed != 0 {
				t.Errorf("%s: %+v", protocol, s)
			}
		}
	}
}

// TestCollectorsOverSockets: a collector that refuses, one that redirects, one that accepts the connection and stays
// silent, and none at all.
func TestCollectorsOverSockets(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the exporter followed a redirect with all its headers")
	}))
	defer elsewhere.Close()
	redirects := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer redirects.Close()
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer refuses.Close()
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	for name, endpoint := range map[string]string{"redirects": redirects.URL, "refuses": refuses.URL, "silent": "http://" + silent.Addr().String(), "nobody": "http://127.0.0.1:1"} {
		for _, protocol := range []Protocol{HTTP, GRPC} {
			tr := open(t, Options{Endpoint: endpoint, Protocol: protocol, Ratio: 1, pause: time.Millisecond})
			tr.keep(oneSpan(), facts{})
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			if err := tr.Close(ctx); err != nil {
				t.Errorf("%s by %s: %v", name, protocol, err)
			}
			cancel()
			if s := tr.Stats(); s.Failed != 1 || s.Sent != 0 || s.Waiting != 0 {
				t.Errorf("%s by %s: %+v", name, protocol, s)
			}
		}
	}
}

// BenchmarkTurn measures the cost of a turn with a tool for its session: sampled, and not sampled.
func BenchmarkTurn(b *testing.B) {
	for name, ratio := range map[string]float64{"kept": 1, "not_kept": 0} {
		b.Run(name, func(b *testing.B) {
			var t testing.T
			n := &nasty{hangs: true}
			tr := open(&t, Options{Ratio: ratio, Client: n})
			k := begin(&t, tr, session.Opening{})
			conversations["tool_call"](&t, k)
			steps := k.steps
			followed := tr.Voice(session.Opening{SessionID: "s", Agent: "default", Provider: "openai", Model: "m", Came: epoch, Begun: epoch})
			b.ReportAllocs()
			for b.Loop() {
				for _, s := range steps {
					followed.Take(s)
				}
			}
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = tr.Close(ctx)
		})
	}
}
