package checks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"voicegw/internal/bounded"
	"voicegw/internal/testutil"
	"voicegw/internal/webhook"
	"voicegw/transport/textmodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testutil.Main(m, testutil.Need{})) }

func secretOf(t testing.TB) webhook.Secret {
	t.Helper()
	s, err := webhook.ParseSecret("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// endpointOf returns a Remote of a server on this machine.
func endpointOf(t testing.TB, h http.HandlerFunc, secrets ...webhook.Secret) Remote {
	t.Helper()
	server := httptest.NewServer(h)
	e := NewEndpoint("judge", server.URL, true, secrets...)
	t.Cleanup(func() {
		e.(*endpoint).out.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return e
}

// drained reads the request: without this the server does not notice that its client disconnects.
func drained(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }

func TestEndpoint(t *testing.T) {
	var got map[string]string
	e := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(data, &got) != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("the request is %s %s: %s", r.Method, r.Header, data)
		}
		signed := http.Header{}
		if id := r.Header.Get(webhook.HeaderID); !strings.HasPrefix(id, "chk_") || r.Header.Get(webhook.HeaderSignature) == "" {
			t.Errorf("the request is not signed: %s", r.Header)
		} else {
			at, err := time.ParseDuration(r.Header.Get(webhook.HeaderTimestamp) + "s")
			if err != nil {
				t.Error(err)
			}
			webhook.Sign(signed, id, time.Unix(0, 0).Add(at), data, secretOf(t))
		}
		if signed.Get(webhook.HeaderSignature) != r.Header.Get(webhook.HeaderSignature) {
			t.Error("the signature is wrong")
		}
		fmt.Fprintf(w, `{"pass": %t, "why": "unknown members are ignored"}`, got["new"] != "Bad. ")
	}, secretOf(t))
	for text, want := range map[string]bool{"Good. ": true, "Bad. ": false} {
		pass, err := e.Check(t.Context(), Text{SessionID: "s", ConversationID: "c", Text: "Hello. " + text, New: text})
		if err != nil || pass != want {
			t.Errorf("%s: %t, %v", text, pass, err)
		}
		if got["session_id"] != "s" || got["conversation_id"] != "c" || got["text"] != "Hello. "+text {
			t.Errorf("the endpoint got %v", got)
		}
	}
	if _, err := e.Check(t.Context(), Text{Text: strings.Repeat("é", maxSent)}); err != nil || len(got["text"]) != maxSent {
		t.Errorf("%d bytes were sent: %v", len(got["text"]), err)
	}
}

// TestBadEndpoints: for every bad or missing answer of an endpoint, the check fails in time, and the error has no address.
func TestBadEndpoints(t *testing.T) {
	for name, tt := range map[string]struct {
		h    http.HandlerFunc
		want string
	}{
		"hangs": {func(_ http.ResponseWriter, r *http.Request) { drained(r); <-r.Context().Done() }, "deadline exceeded"},
		"hangs later": {func(w http.ResponseWriter, r *http.Request) {
			drained(r)
			fmt.Fprint(w, `{"pa`)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, ""},
		"floods": {func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := fmt.Fprint(w, strings.Repeat(" ", 4096)); err != nil {
					return
				}
			}
		}, ""},
		"garbage":          {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "\xff\x00OK") }, `not {"pass": true}`},
		"nothing":          {func(http.ResponseWriter, *http.Request) {}, `not {"pass": true}`},
		"another type":     {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"pass": "yes"}`) }, `not {"pass": true}`},
		"no member":        {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"ok": true}`) }, `not {"pass": true}`},
		"a list":           {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `[true]`) }, `not {"pass": true}`},
		"a failure":        {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500); fmt.Fprint(w, `{"pass": true}`) }, "status 500"},
		"another success":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, "status 204"},
		"elsewhere":        {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusFound) }, "status 302"},
		"breaks off":       {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, ""},
		"deeply nested":    {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("[", 1000)) }, ""},
		"too many members": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "["+strings.Repeat("1,", 1000)+"1]") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := endpointOf(t, tt.h)
			ctx := t.Context()
			if strings.HasPrefix(name, "hangs") {
				soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
				defer cancel()
				ctx = soon
			}
			pass, err := e.Check(ctx, Text{Text: "Hello."})
			if pass || err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "127.0.0.1") {
				t.Errorf("%t, %v", pass, err)
			}
		})
	}
	e := NewEndpoint("judge", "http://127.0.0.1:1/secret", false)
	if _, err := e.Check(t.Context(), Text{}); !errors.Is(err, bounded.ErrAddress) || strings.Contains(err.Error(), "secret") {
		t.Errorf("a private address: %v", err)
	}
}

type modelSays string

func (m modelSays) Complete(_ context.Context, p textmodel.Prompt, _ func(string)) (textmodel.Reply, error) {
	if len(p.Messages) != 2 || !strings.Contains(p.Messages[0].Text, "Is it rude?") || p.Messages[1].Text != `"Hello \"you\"."` {
		return textmodel.Reply{}, fmt.Errorf("the prompt is %+v", p.Messages)
	}
	return textmodel.Reply{Text: string(m)}, nil
}

func TestQuestion(t *testing.T) {
	for says, want := range map[string]string{"no": "pass", "No.": "pass", " **NO** ": "pass", "yes": "refuse", "Yes!": "refuse",
		"": "error", "maybe": "error", "no, but yes": "error"} {
		pass, err := NewQuestion("Is it rude?", modelSays(says)).Check(t.Context(), Text{Text: `Hello "you".`})
		got := map[bool]string{true: "pass", false: "refuse"}[pass]
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: %s, want %s (%v)", says, got, want, err)
		}
	}
}

func FuzzVerdicts(f *testing.F) {
	for _, seed := range []string{`{"pass":true}`, `{"pass":null}`, `[]`, "yes", "No.", "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if pass, err := verdictOf(data); pass && (err != nil || !strings.Contains(string(data), "true")) {
			t.Errorf("%q passes", data)
		}
		if pass, err := decided(string(data)); pass && (err != nil || !strings.Contains(strings.ToLower(string(data)), "no")) {
			t.Errorf("%q passes", data)
		}
	})
}

// FuzzWords: for words in pieces of any length, a refused word is never released, and released words are in the text.
func FuzzWords(f *testing.F) {
	f.Add("well, you DAMN fool", uint8(3))
	f.Add("d\u200bamn. Ⓓamn \xff damn", uint8(1))
	f.Fuzz(func(t *testing.T, text string, step uint8) {
		set, err := New(time.Hour, slog.New(slog.DiscardHandler), &Rule{Name: "r", Outcome: Cut, Words: []string{"damn"}})
		if err != nil {
			t.Fatal(err)
		}
		l, n := newLine[int](set, true), int(step)+1
		for end := n; ; end += n {
			end = min(end, len(text))
			l.words(time.UnixMilli(0), "a", text[:end], end == len(text), 0)
			l.pump(time.UnixMilli(0))
			if end == len(text) {
				break
			}
		}
		for _, r := range l.out {
			if found, _ := set.rules[0].match(r.Text, 0, true); found || !strings.HasPrefix(text, r.Text) {
				t.Errorf("%q of %q was released", r.Text, text)
			}
		}
	})
}

func TestBadRules(t *testing.T) {
	for want, r := range map[string]*Rule{
		"only one of them":    {Name: "a", Outcome: Cut},
		"needs say":           {Name: "a", Outcome: Replace, Words: []string{"a"}},
		"needs a letter":      {Name: "a", Outcome: Cut, Words: []string{"--"}},
		"refuses: change say": {Name: "a", Outcome: Replace, Say: "Damn.", Words: []string{"damn"}},
	} {
		if _, err := New(0, slog.New(slog.DiscardHandler), r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if set, err := New(time.Second, nil); set != nil || err != nil || set.Counts() != nil {
		t.Error("a set without rules is not nil")
	}
}

// recorder records the releases and stops of a gate.
type recorder struct {
	mu    sync.Mutex
	got   []string
	stops []Stop
}

func (h *recorder) Release(r Released[string]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.Words {
		r.Value = r.Text
	}
	h.got = append(h.got, r.Value)
}

func (h *recorder) Unmatched(string, string, int) bool { return false }

func (h *recorder) Stopped(s Stop) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stops = append(h.stops, s)
}

type remoteFunc func(ctx context.Context, t Text) (bool, error)

func (f remoteFunc) Check(ctx context.Context, t Text) (bool, error) { return f(ctx, t) }

// TestCounts: each result of a check is counted apart.
func TestCounts(t *testing.T) {
	set, err := New(time.Second, slog.New(slog.DiscardHandler), &Rule{Name: "r", Outcome: Cut, Words: []string{"damn"}})
	if err != nil {
		t.Fatal(err)
	}
	for i, result := range results {
		for range i + 1 {
			set.rules[0].count(result)
		}
	}
	want := []Count{{"r", "passed", 1}, {"r", "matched", 2}, {"r", "late", 3}, {"r", "failed", 4}}
	if got := set.Counts(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestGate: requests run concurrently, up to a limit. Text without a verdict passes after the hold-back. Close ends the
// requests.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open, most atomic.Int64
		set, err := New(time.Second, slog.New(slog.DiscardHandler), &Rule{Name: "slow", Outcome: Cut, Timeout: time.Hour,
			Remote: remoteFunc(func(ctx context.Context, _ Text) (bool, error) {
				most.Store(max(most.Load(), open.Add(1)))
				defer open.Add(-1)
				<-ctx.Done()
				return false, ctx.Err()
			})})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		var gates []*Gate[string]
		for range maxAtOnce {
			began := time.Now()
			h := &recorder{}
			g := NewGate(set, Text{}, false, h, all.Go)
			gates = append(gates, g)
			g.Other(true, "begin")
			g.Words("a", "One. Two. Three. Four.", false, "")
			g.Words("a", "One. Two. Three. Four. Five. Six. Seven", false, "")
			g.Words("a", "One. Two. Three. Four. Five. Six. Seven.", true, "")
			g.Audio("a", time.Minute, "sound")
			g.Other(false, "end")
			if err := g.Wait(t.Context()); err != nil || time.Since(began) > time.Second {
				t.Fatalf("%v after %v", err, time.Since(began))
			}
			if h.got[len(h.got)-1] != "end" || len(h.got) < 3 || len(h.stops) != 0 {
				t.Fatalf("the gate released %q", h.got)
			}
		}
		synctest.Wait()
		if n := most.Load(); n != maxAtOnce {
			t.Errorf("%d requests ran at once, want %d", n, maxAtOnce)
		}
		for _, g := range gates {
			g.Close()
		}
		all.Wait()
		if n := open.Load(); n != 0 {
			t.Errorf("%d requests still run", n)
		}
	})
}

// TestLongText: a remote check gets every part of a long text.
func TestLongText(t *testing.T) {
	asked := 0
	set, err := New(time.Second, slog.New(slog.DiscardHandler), &Rule{Name: "long", Outcome: Cut,
		Remote: remoteFunc(func(_ context.Context, t Text) (bool, error) {
			asked += len(ending(t.New))
			return true, nil
		})})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("größer ", maxSent/2)
	h := &recorder{}
	var queue []func()
	g := NewGate(set, Text{}, true, h, func(f func()) { queue = append(queue, f) })
	defer g.Close()
	for g.Words("a", text, true, ""); len(queue) > 0; queue = queue[1:] {
		queue[0]()
	}
	if asked != len(text) || len(h.got) == 0 || h.got[len(h.got)-1] != text {
		t.Errorf("%d of %d bytes were checked, and the gate released %d values", asked, len(text), len(h.got))
	}
}

// BenchmarkPiece measures the gateway's own work on a piece of 5 characters in an answer of 2,000.
func BenchmarkPiece(b *testing.B) {
	answer := strings.Repeat("This is a sentence of some words, as a model says it in a minute. ", 30)
	var words []string
	for i := range 1000 {
		words = append(words, fmt.Sprintf("word%d", i))
	}
	for name, r := range map[string]*Rule{
		"words":    {Words: words},
		"patterns": {Patterns: []*regexp.Regexp{regexp.MustCompile(`\b\d{4}( ?\d{4}){3}\b`), regexp.MustCompile(`(?i)\bcall me\b`)}},
		"remote":   {Remote: remoteFunc(func(context.Context, Text) (bool, error) { return true, nil })},
	} {
		b.Run(name, func(b *testing.B) {
			r.Name, r.Outcome = name, Cut
			set, err := New(time.Second, slog.New(slog.DiscardHandler), r)
			if err != nil {
				b.Fatal(err)
			}
			var all sync.WaitGroup
			b.ReportAllocs()
			g, end := NewGate(set, Text{}, false, &recorder{}, all.Go), 0
			for b.Loop() {
				if end += 5; end >= len(answer) {
					g.Close()
					g, end = NewGate(set, Text{}, false, &recorder{}, all.Go), 5
				}
				g.Words("a", answer[:end], false, "")
			}
			g.Close()
			all.Wait()
		})
	}
	b.Run("endpoint", func(b *testing.B) {
		e := endpointOf(b, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"pass":true}`) }, secretOf(b))
		for b.Loop() {
			if pass, err := e.Check(b.Context(), Text{Text: answer, New: answer[:66]}); !pass || err != nil {
				b.Fatal(err)
			}
		}
	})
}
