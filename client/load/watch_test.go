package load

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/client/load/report"
	"voicegw/client/wire"
	"voicegw/internal/process"
)

// quiet serves a gateway's status, with sessions for a while after the last call.
type quiet struct {
	left      atomic.Int64 // number of further reports of two sessions
	ready     atomic.Int64 // number of further reports of not being ready
	collected atomic.Int64
}

func (q *quiet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/healthz":
		n := 0
		if q.left.Add(-1) >= 0 {
			n = 2
		}
		_, _ = fmt.Fprintf(w, `{"status":"ok","sessions":%d}`, n)
	case "/readyz":
		if q.ready.Add(-1) >= 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	case "/debug/vars":
		if r.URL.Query().Get("gc") == "1" {
			q.collected.Add(1)
		}
		_, _ = fmt.Fprint(w, `{"goroutines": 60, "heap_alloc": 31457280, "fds": 20}`)
	}
}

// TestDescriptorsMayBeClosedLate: a store closes its files within minutes; the wait for leaked ones is limited.
func TestDescriptorsMayBeClosedLate(t *testing.T) {
	for name, c := range map[string]struct{ closes, waits time.Duration }{
		"at once": {0, 0}, "late": {2 * time.Minute, 2 * time.Minute}, "never": {time.Hour, closeTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				w := &watch{start: report.State{FDs: 13}}
				w.descriptors = func() (int, error) {
					if time.Since(begun) < c.closes {
						return 15, nil
					}
					return 13, nil
				}
				w.awaitClosed(t.Context())
				if waited := time.Since(begun); waited != c.waits {
					t.Errorf("waited for %s, want %s", waited, c.waits)
				}
			})
		})
	}
}

// TestSoakWaitsForBuffers covers the store's buffers at both ends.
func TestSoakWaitsForBuffers(t *testing.T) {
	for mode, want := range map[Mode]time.Duration{Steady: settleTime, Soak: bufferTime} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, err := newWatch(t.Context(), Options{Plan: ScheduleOptions{Mode: mode}}, nil)
				if err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				w.rest(t.Context(), func() {})
				if waited := time.Since(begun); waited != want {
					t.Errorf("waited for %s, want %s", waited, want)
				}
			})
		})
	}
}

// varying serves a debug address with varying memory.
type varying func() (heap int64)

func (v varying) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(fmt.Sprintf(`{"goroutines": 60, "heap_alloc": %d, "fds": 20}`, v())))}, nil
}

// TestSoakMemoryIsTheMinimum: short-lived buffers of the store do not count, whenever it writes.
func TestSoakMemoryIsTheMinimum(t *testing.T) {
	for mode, want := range map[Mode]float64{Soak: 28, Steady: 40} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				heap := varying(func() int64 {
					if at := time.Since(begun); at > 30*time.Second && at < 50*time.Second {
						return 28 << 20
					}
					return 40 << 20
				})
				w, err := newWatch(t.Context(), Options{PID: os.Getpid(), Debug: "http://gateway", Plan: ScheduleOptions{Mode: mode}}, &http.Client{Transport: heap})
				if err != nil {
					t.Fatal(err)
				}
				if s := w.state(t.Context()); s.HeapMB != want || s.Goroutines != 60 {
					t.Errorf("%+v, want %v MB", s, want)
				}
			})
		})
	}
}

// TestDescriptorsAreTheMinimum: the lowest descriptor count is used; the count at the start does not affect the end.
func TestDescriptorsAreTheMinimum(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("process usage is available on Linux only")
	}
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		w := &watch{pid: os.Getpid(), soak: true, settle: bufferTime}
		w.descriptors = func() (int, error) {
			switch at := time.Since(begun); {
			case at == 5*time.Second:
				return 12, nil
			case at < time.Minute:
				return 13, nil
			case at == 2*time.Minute: // two closed, one opened again
				return 12, nil
			default:
				return 14, nil
			}
		}
		w.begin(t.Context())
		if w.start.FDs != 12 {
			t.Errorf("%d at the start", w.start.FDs)
		}
		<-time.After(time.Minute)
		w.end(t.Context())
		if w.ended.FDs != 12 {
			t.Errorf("%d at the end", w.ended.FDs)
		}
		w.descriptors = func() (int, error) { return 20, nil }
		w.end(t.Context())
		if w.ended.FDs != 20 {
			t.Errorf("%d are reported, want the 20 that stay open", w.ended.FDs)
		}
	})
}

// TestWaitIsReported: progress is reported every second.
func TestWaitIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported []string
		w, err := newWatch(t.Context(), Options{Plan: ScheduleOptions{Mode: Soak}, Progress: func(s Status) {
			reported = append(reported, fmt.Sprint(s.Elapsed, " of ", s.Total, " ", s.Waiting))
		}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.rest(t.Context(), func() {})
		if len(reported) != 60 || reported[0] != "1s of 1m0s until the gateway is at rest" || reported[59] != "1m0s of 1m0s until the gateway is at rest" {
			t.Errorf("reported %d times: %q", len(reported), reported)
		}
		reported = nil
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		w.descriptors = func() (int, error) { return 1, nil }
		w.awaitClosed(ctx)
		if len(reported) != 1 || reported[0] != "1s of 3m0s until the gateway's store closes its files" {
			t.Errorf("reported %q", reported)
		}
		reported = nil
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		l := newLedger()
		l.saw("mine", "1")
		if a := l.compare(t.Context(), path, w.progress); a.Expected != 1 || a.Found != 0 || a.Problem != "" {
			t.Errorf("%+v", a)
		}
		if len(reported) != 5 || reported[4] != "5s of 5s until the audit is complete" {
			t.Errorf("reported %q", reported)
		}
	})
}

// watching watches this process with a gateway's status.
func watching(t *testing.T, q *quiet) (*watch, *httptest.Server) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("process usage is available on Linux only")
	}
	srv := httptest.NewServer(q)
	t.Cleanup(srv.Close)
	w, err := newWatch(t.Context(), Options{URL: "ws" + strings.TrimPrefix(srv.URL, "http") + "/v1/voice", PID: os.Getpid(), Debug: srv.URL}, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
	if err != nil {
		t.Fatal(err)
	}
	return w, srv
}

// TestGatewayIsMeasuredAtRest: without sessions and after a garbage collection.
func TestGatewayIsMeasuredAtRest(t *testing.T) {
	t.Parallel()
	q := &quiet{}
	q.left.Store(3)
	w, _ := watching(t, q)
	w.begin(t.Context())
	if asked := q.left.Load(); asked >= 0 || q.collected.Load() != 1 {
		t.Errorf("it was measured with sessions (%d), or before a collection (%d)", asked, q.collected.Load())
	}
	if s := w.start; s.Goroutines != 60 || s.HeapMB != 30 || s.RSSMB < 5 || s.Threads < 1 || s.FDs < 3 {
		t.Errorf("the usage is %+v", s)
	}
	if left := w.end(t.Context()); left != 0 || q.collected.Load() != 2 || w.ended.HeapMB != 30 {
		t.Errorf("%d remain, %+v", left, w.ended)
	}
}

// TestRemainingSessionsAreReported: sessions that remain after a while are reported.
func TestRemainingSessionsAreReported(t *testing.T) {
	t.Parallel()
	q := &quiet{}
	q.left.Store(1 << 40)
	srv := httptest.NewServer(q)
	defer srv.Close()
	w := &watch{health: srv.URL + "/healthz", client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	if left := w.end(t.Context()); left != 2 {
		t.Errorf("%d remain", left)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if left := w.end(ctx); left != 0 {
		t.Errorf("%d remain, but the count is unknown", left)
	}
}

// TestResourcesForEachSession are means over the run.
func TestResourcesForEachSession(t *testing.T) {
	w := &watch{pid: 1, start: report.State{RSSMB: 50}, ended: report.State{RSSMB: 55}}
	w.first.CPU, w.latest.CPU = time.Second, 5*time.Second
	w.most = report.Process{RSSMB: 70, CPUMax: 60, FDs: 9}
	r := &report.Report{Counters: map[string]int64{"frames_up": 900, "frames_down": 100}}
	r.Series = []report.Point{{Sessions: 10}, {Sessions: 20}, {Sessions: 0}}
	got := w.resources(r, 10*time.Second)
	want := report.Resources{
		PID: 1, Process: report.Process{CPU: 40, CPUMax: 60, RSSMB: 70, FDs: 9}, CPUPerSession: 4, CPUPerFrameUS: 4000, RSSPerSessionKB: 1024,
		Start: w.start, End: w.ended,
	}
	if *got != want {
		t.Errorf("got  %+v\nwant %+v", *got, want)
	}
	if w.pid = 0; w.resources(r, time.Second) != nil {
		t.Error("there are resources without sessions")
	}
}

// TestUsageOverTime covers the last interval.
func TestUsageOverTime(t *testing.T) {
	t.Parallel()
	w, _ := watching(t, &quiet{})
	u, err := process.Read(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	w.latest, w.at = u, time.Now().Add(-time.Second)
	for now := u; now.CPU == u.CPU; { // until the CPU time has grown
		if now, err = process.Read(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
	cpu, rss := w.look(time.Now())
	if cpu <= 0 || cpu > 100*float64(runtime.NumCPU()) || rss < 5 || w.most.CPUMax != cpu || w.most.RSSMB != rss {
		t.Errorf("%v %% and %v MB; %+v", cpu, rss, w.most)
	}
}

// TestAwaitReady covers success and the timeout.
func TestAwaitReady(t *testing.T) {
	t.Parallel()
	q := &quiet{}
	srv := httptest.NewServer(q)
	defer srv.Close()
	o := Options{URL: "ws" + strings.TrimPrefix(srv.URL, "http") + "/v1/voice", Wait: 20 * time.Second}
	q.ready.Store(2)
	if err := awaitReady(t.Context(), o, srv.Client()); err != nil || q.ready.Load() != -1 {
		t.Errorf("%v, %d", err, q.ready.Load())
	}
	q.ready.Store(1 << 40)
	var reported []string
	o.Wait, o.Progress = 1100*time.Millisecond, func(s Status) { reported = append(reported, s.Waiting) }
	if err := awaitReady(t.Context(), o, srv.Client()); err == nil || !strings.Contains(err.Error(), "within 1.1s: it answers 503") {
		t.Errorf("got %v", err)
	}
	if len(reported) == 0 || reported[0] != "until the gateway is ready" {
		t.Errorf("reported %q", reported)
	}
}

// TestAuditComparison compares the audit with the callers' records: other sessions and unseen calls are ignored;
// missing records and repeated side effects are found.
func TestAuditComparison(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	record := func(session, call, key, rest string) string {
		return fmt.Sprintf(`{"event":"tool_execution","time":"2026-11-22T01:00:00.000Z","toolId":"book","mode":"voice","sessionId":%q,"turnId":1,"callId":%q,"businessKey":%q,"durationMs":1,"delivered":true,%s}`+"\n", session, call, key, rest)
	}
	const done, stored, failed = `"ok":true,"cacheHit":false`, `"ok":true,"cacheHit":true`, `"ok":false,"cacheHit":false`
	lines := record("mine", "1", "a", done) + record("mine", "2", "a", stored) + record("mine", "3", "b", failed) + record("mine", "4", "b", done) + record("other", "1", "a", done) + record("mine", "9", "", done)
	lines += record("mine", "4", "b", done+`,"again":true`) // its gateway was killed
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	l := newLedger()
	for _, id := range []string{"1", "2", "3", "4"} {
		l.saw("mine", id)
	}
	if got, want := *l.compare(t.Context(), path, nil), (report.Audit{File: path, Expected: 4, Found: 4}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	// The comparison waits for a late record; one that never arrives is missing.
	l.saw("mine", "5")
	wrote := make(chan error, 1)
	time.AfterFunc(600*time.Millisecond, func() {
		wrote <- os.WriteFile(path, []byte(lines+record("mine", "5", "a", done)), 0o600)
	})
	if got := l.compare(t.Context(), path, nil); got.Found != 5 || got.Twice != 1 || got.Problem != "" {
		t.Errorf("got %+v", got)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	l.saw("mine", "6")
	if got := l.read(t.Context(), path); got.Expected != 6 || got.Found != 5 {
		t.Errorf("got %+v", got)
	}
	if got := l.read(t.Context(), path+".gone"); got.Problem == "" {
		t.Errorf("a missing file: %+v", got)
	}
	if got := newLedger().read(t.Context(), path+".gone"); got.Problem != "" {
		t.Errorf("without calls: %+v", got)
	}
}

// TestUnreachableGateway: each session tries its script once and fails, and the run ends.
func TestUnreachableGateway(t *testing.T) {
	s, err := ParseScript("s", []byte("turns: [{type: a}]"), wire.Wire{})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{URL: "ws://127.0.0.1:1/v1/voice", Script: s, Plan: ScheduleOptions{Sessions: 3}}
	rep, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if rep.Counters["refused"] != 3 || rep.Counters["calls"] != 3 || rep.Resources != nil || rep.Audit != nil || rep.TookMS > 10_000 {
		t.Errorf("%v after %d ms", rep.Counters, rep.TookMS)
	}
}
