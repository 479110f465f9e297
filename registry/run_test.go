package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/testutil"
	"voicegw/registry/spec"
)

type probe = func(context.Context, Call[none, none]) (Result, error)

func TestRunOutcomes(t *testing.T) {
	ok := func(r Result) probe { return func(context.Context, Call[none, none]) (Result, error) { return r, nil } }
	failing := func(err error) probe {
		return func(context.Context, Call[none, none]) (Result, error) {
			return Result{Data: "dropped", Intents: []Intent{SuppressAudio(true)}}, err
		}
	}
	internal := `{"type":"INTERNAL","message":"The tool probe failed unexpectedly.","retryable":false,"suggestion":"Tell the user that it does not work at the moment."}`
	secret := errors.New("dial tcp: password=hunter2")
	cyclic := map[string]any{}
	cyclic["self"] = cyclic
	tests := []struct {
		name   string
		f      probe
		want   string // data and intents, or the error
		logged string
	}{
		{"data", ok(Result{Data: map[string]int{"n": 1}}), `{"n":1} []`, ""},
		{"nothing", ok(Result{}), `null []`, ""},
		{"markup stays", ok(Result{Data: "<a&b>"}), `"<a&b>" []`, ""},
		{"intents", ok(Result{Data: 1, Intents: []Intent{EndVoiceSession(EndAfterFarewellSpoken), SuppressAudio(true), SuppressTranscript(false), SetPendingMessage("later")}}),
			`1 [{"type":"END_VOICE_SESSION","after":"farewell_spoken"},{"type":"SUPPRESS_AUDIO","value":true},{"type":"SUPPRESS_TRANSCRIPT","value":false},{"type":"SET_PENDING_MESSAGE","message":"later"}]`, ""},
		{"panic", func(context.Context, Call[none, none]) (Result, error) { panic("at the disco") }, internal, "at the disco"},
		{"panic of the runtime", func(context.Context, Call[none, none]) (Result, error) {
			return Result{Data: []int{}[len(os.Args)]}, nil
		}, internal, "run_test.go"},
		{"panic of nil", func(context.Context, Call[none, none]) (Result, error) { panic(nil) }, internal, "panicked"}, //nolint:govet // the code under test
		{"Goexit", func(context.Context, Call[none, none]) (Result, error) { runtime.Goexit(); return Result{}, nil }, internal, "ended its goroutine"},
		{"unknown intent", ok(Result{Intents: []Intent{{Type: "SELF_DESTRUCT"}}}), internal, "SELF_DESTRUCT"},
		{"intent without a moment", ok(Result{Intents: []Intent{{Type: IntentEndVoiceSession}}}), internal, "END_VOICE_SESSION after"},
		{"intent with a foreign field", ok(Result{Intents: []Intent{{Type: IntentSuppressAudio, Message: "x"}}}), internal, "does not take"},
		{"intent with an empty message", ok(Result{Intents: []Intent{SetPendingMessage("")}}), internal, "0 characters"},
		{"too many intents", ok(Result{Intents: make([]Intent, 9)}), internal, "9 intents"},
		{"a channel for data", ok(Result{Data: make(chan int)}), internal, "unsupported type"},
		{"not a number for data", ok(Result{Data: math.NaN()}), internal, "unsupported value"},
		{"raw garbage for data", ok(Result{Data: json.RawMessage(`{"a":`)}), internal, "unexpected end"},
		{"data without end", ok(Result{Data: cyclic}), internal, "cycle"},
		{"data that panics", ok(Result{Data: panics{}}), internal, "no JSON today"},
		{"too much data", ok(Result{Data: strings.Repeat("x", 300_000)}), internal, "300002 bytes"},
		{"an error without a name", failing(secret), internal, "hunter2"},
		{"a named error", failing(&ToolError{Type: ErrorConflict, Message: "Taken.", PartialSideEffects: true, Details: map[string]int{"n": 2}, Suggestion: "Ask for another time.", Err: secret}),
			`{"type":"CONFLICT","message":"Taken.","retryable":false,"partialSideEffects":true,"details":{"n":2},"suggestion":"Ask for another time."}`, ""},
		{"a named error that is wrapped", failing(fmt.Errorf("outer: %w", Errorf(ErrorTransient, "busy: %d", 3))), `{"type":"TRANSIENT","message":"busy: 3","retryable":true}`, ""},
		{"a named error without a message", failing(&ToolError{Type: ErrorAuth}), `{"type":"AUTH","message":"The tool probe failed.","retryable":false}`, ""},
		{"a named error of an unknown type", failing(&ToolError{Type: "OOPS", Message: "secret"}), internal, "OOPS"},
		{"a named error that is nil", failing((*ToolError)(nil)), internal, "tool failed"},
		{"a named error with garbage", failing(&ToolError{Type: ErrorNotFound, Message: "Gone.", Details: make(chan int)}), `{"type":"NOT_FOUND","message":"Gone.","retryable":false}`, "without its details"},
		{"a long message", failing(Errorf(ErrorPermanent, "%s", strings.Repeat("x", 5000))), `{"type":"PERMANENT","message":"` + strings.Repeat("x", 2000) + `…","retryable":false}`, ""},
		{"context's error without a cause", failing(context.Canceled), internal, "context canceled"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, opts, logged := simple(t, tt.f)
			r := mustLoad(t, opts, e)
			env := r.Snapshot().Execute(t.Context(), "probe", spec.ModeText, nil, Session{ID: "s7"})
			checkEnvelope(t, env)
			got := string(mustMarshal(t, env.Error))
			if env.OK {
				got = string(env.Data) + " " + string(mustMarshal(t, env.Intents))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(logged.String(), tt.logged) || (tt.logged == "") != (logged.Len() == 0) {
				t.Errorf("logged %q, want %q", logged, tt.logged)
			}
			if strings.Contains(string(env.Encode()), "hunter2") {
				t.Error("an inner error was revealed")
			}
			want := ToolStats{Calls: 1}
			if env.OK {
				want.OK = 1
			} else {
				want.Errors = map[ErrorType]int64{env.Error.Type: 1}
			}
			stats := r.Stats()["probe"]
			stats.Duration, stats.Slowest = 0, 0
			if diff := cmp.Diff(want, stats); diff != "" {
				t.Error(diff)
			}
		})
	}
}

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("no JSON today") }

// TestPartialSideEffects: an unexpected failure of a writing tool may have written, and a retry of a non-idempotent
// one needs its key.
func TestPartialSideEffects(t *testing.T) {
	action := []string{`category: "action"`, `idempotent: false`}
	tests := []struct {
		name             string
		changes          []string
		err              error
		partial, require bool
	}{
		{"reads", nil, errors.New("x"), false, false},
		{"writes", append(action, writes), errors.New("x"), true, true},
		{"writes, idempotent", []string{`category: "action"`, writes}, errors.New("x"), true, false},
		{"writes, named", append(action, writes), Errorf(ErrorConflict, "taken"), false, false},
		{"writes, named and retryable", append(action, writes), Errorf(ErrorTransient, "busy"), false, true},
		{"writes, named INTERNAL", append(action, writes), Errorf(ErrorInternal, "x"), true, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, opts, _ := simple(t, func(context.Context, Call[none, none]) (Result, error) { return Result{}, tt.err }, tt.changes...)
			env := mustLoad(t, opts, e).Snapshot().Execute(t.Context(), "probe", spec.ModeText, nil, Session{})
			checkEnvelope(t, env)
			if env.Error.PartialSideEffects != tt.partial || env.Error.IdempotencyRequired != tt.require {
				t.Errorf("got %s", env.Encode())
			}
		})
	}
}

// TestDeadline: handlers that block, heed their context, ignore it, or end late.
func TestDeadline(t *testing.T) {
	release := func() (chan struct{}, func()) { c := make(chan struct{}); return c, func() { close(c) } }
	t.Run("one that heeds its context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e, opts, logged := simple(t, func(ctx context.Context, _ Call[none, none]) (Result, error) {
				<-ctx.Done()
				return Result{}, fmt.Errorf("asking: %w", ctx.Err())
			})
			r := mustLoad(t, opts, e)
			start := time.Now()
			env := r.Snapshot().Execute(t.Context(), "probe", spec.ModeText, nil, Session{})
			checkEnvelope(t, env)
			if took := time.Since(start); took != 2*time.Second || env.Meta.DurationMS != 2000 {
				t.Errorf("it took %v and says %d ms", took, env.Meta.DurationMS)
			}
			if env.Error.Type != ErrorTransient || !env.Error.Retryable || !env.Meta.LatencyBudgetExceeded || !strings.Contains(env.Error.Message, "did not finish within 2000 ms") {
				t.Errorf("got %s", env.Encode())
			}
			if !strings.Contains(logged.String(), "level=WARN") {
				t.Errorf("logged %q", logged)
			}
			synctest.Wait()
			if s := r.Stats()["probe"]; s.Running != 0 || s.LeftBehind != 0 || s.Calls != 1 || s.OverBudget != 1 || s.Slowest != 2*time.Second {
				t.Errorf("counters: %+v", s)
			}
		})
	})
	t.Run("one that ignores it is abandoned and its result dropped", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			hang, let := release()
			e, opts, _ := simple(t, func(context.Context, Call[none, none]) (Result, error) {
				<-hang
				return Result{Data: "late"}, nil
			}, writes, `category: "action"`, `idempotent: false`)
			r := mustLoad(t, opts, e)
			env := r.Snapshot().Execute(t.Context(), "probe", spec.ModeText, nil, Session{})
			checkEnvelope(t, env)
			before := string(env.Encode())
			if env.OK || env.Error.Retryable || !env.Error.PartialSideEffects || !env.Error.IdempotencyRequired {
				t.Errorf("got %s", before)
			}
			if s := r.Stats()["probe"]; s.Running != 1 || s.LeftBehind != 1 || s.Abandoned != 1 {
				t.Errorf("counters while it hangs: %+v", s)
			}
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := r.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Wait while it hangs: %v", err)
			}
			let()
			if err := r.Wait(t.Context()); err != nil {
				t.Errorf("Wait: %v", err)
			}
			if s := r.Stats()["probe"]; s.Running != 0 || s.LeftBehind != 0 || s.Abandoned != 1 || s.OK != 0 {
				t.Errorf("counters after: %+v", s)
			}
			if after := string(env.Encode()); after != before {
				t.Errorf("the envelope changed to %s", after)
			}
		})
	})
	t.Run("one that panics after its deadline", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			hang, let := release()
			e, opts, logged := simple(t, func(context.Context, Call[none, none]) (Result, error) { <-hang; panic("late") })
			r := mustLoad(t, opts, e)
			if env := r.Snapshot().Execute(t.Context(), "probe", spec.ModeText, nil, Session{}); env.OK {
				t.Error("it is ok")
			}
			let()
			synctest.Wait()
			if !strings.Contains(logged.String(), "late") || r.Stats()["probe"].Running != 0 {
				t.Errorf("logged %q, counters %+v", logged, r.Stats()["probe"])
			}
		})
	})
	t.Run("one over its latency budget", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e, opts, logged := simple(t, func(ctx context.Context, _ Call[none, none]) (Result, error) {
				select {
				case <-time.After(801 * time.Millisecond):
				case <-ctx.Done():
				}
				return Result{Data: 1}, nil
			})
			env := mustLoad(t, opts, e).Snapshot().Execute(t.Context(), "probe", spec.ModeText, nil, Session{})
			checkEnvelope(t, env)
			if !env.OK || !env.Meta.LatencyBudgetExceeded || env.Meta.DurationMS != 801 || !strings.Contains(logged.String(), "over its latency budget") {
				t.Errorf("got %s, logged %q", env.Encode(), logged)
			}
		})
	})
}

// httpTimeout is an error like http.Client's: a method reports that it is a timeout.
type httpTimeout struct{}

func (httpTimeout) Error() string { return "Client.Timeout exceeded while awaiting headers" }

func (httpTimeout) Timeout() bool { return true }

// TestADeadlineIsTransient: a timeout from any source, reported in any way, is transient, with the known
// side effects. A call cancelled by the user is not a timeout.
func TestADeadlineIsTransient(t *testing.T) {
	until := func(err func(context.Context) error) func(context.Context, Call[none, none]) (Result, error) {
		return func(ctx context.Context, _ Call[none, none]) (Result, error) {
			<-ctx.Done()
			return Result{}, err(ctx)
		}
	}
	at := func(err error) func(context.Context, Call[none, none]) (Result, error) {
		return func(context.Context, Call[none, none]) (Result, error) { return Result{}, err }
	}
	handlers := map[string]func(context.Context, Call[none, none]) (Result, error){
		"its context's error":            until(context.Context.Err),
		"its context's cause":            until(context.Cause),
		"its context's error, wrapped":   until(func(ctx context.Context) error { return fmt.Errorf("asking: %w", ctx.Err()) }),
		"its own error":                  until(func(context.Context) error { return errors.New("gave up") }),
		"cancelled, by a child's error":  until(func(context.Context) error { return context.Canceled }),
		"nothing, ever":                  func(context.Context, Call[none, none]) (Result, error) { <-time.After(time.Hour); return Result{}, nil },
		"a shorter deadline of its own":  at(fmt.Errorf("the source: %w", context.DeadlineExceeded)),
		"a connection's deadline":        at(&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}),
		"a name server's":                at(&net.DNSError{IsTimeout: true}),
		"an HTTP client's":               at(&url.Error{Op: "Get", URL: "https://calendar.example", Err: httpTimeout{}}),
		"called INTERNAL by the handler": at(&ToolError{Type: ErrorInternal, Message: "x", Err: context.DeadlineExceeded}),
		"joined with others":             at(errors.Join(errors.New("x"), context.DeadlineExceeded)),
	}
	kinds := map[string]struct {
		changes            []string
		retryable, partial bool
	}{
		"reads":                {nil, true, false},
		"none, not idempotent": {[]string{`category: "utility"`, `sideEffects: "none"`, `idempotent: false`}, true, false},
		"writes":               {[]string{`category: "action"`, writes, `idempotent: false`}, false, true},
		"writes, idempotent":   {[]string{`category: "action"`, writes}, true, true},
	}
	for name, f := range handlers {
		for kind, want := range kinds {
			t.Run(name+", "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e, opts, logged := simple(t, f, want.changes...)
					env := mustLoad(t, opts, e).Snapshot().Execute(t.Context(), "probe", spec.ModeText, nil, Session{})
					checkEnvelope(t, env)
					if env.OK || env.Error.Type != ErrorTransient || env.Error.Retryable != want.retryable || env.Error.PartialSideEffects != want.partial {
						t.Errorf("got %s", env.Encode())
					}
					if !strings.Contains(logged.String(), "tool out of time") || !strings.Contains(logged.String(), "error=") {
						t.Errorf("logged %q", logged)
					}
					<-time.After(2 * time.Hour) // of the bubble: for an abandoned handler
				})
			})
		}
	}
	t.Run("no time left to begin", func(t *testing.T) {
		e, opts, _ := simple(t, at(nil), writes, `category: "action"`, `idempotent: false`)
		ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
		defer cancel()
		env := mustLoad(t, opts, e).Snapshot().Execute(ctx, "probe", spec.ModeText, nil, Session{})
		if env.OK || env.Error.Type != ErrorTransient || !env.Error.Retryable || env.Error.PartialSideEffects {
			t.Errorf("got %s", env.Encode())
		}
	})
	t.Run("cancelled by the user", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e, opts, _ := simple(t, until(func(context.Context) error { return context.DeadlineExceeded }))
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			env := mustLoad(t, opts, e).Snapshot().Execute(ctx, "probe", spec.ModeText, nil, Session{})
			if env.OK || env.Error.Type != ErrorInternal || env.Error.Retryable || !strings.Contains(env.Error.Message, "cancelled") {
				t.Errorf("got %s", env.Encode())
			}
		})
	})
}

// TestHangingToolIsRefused: each hanging handler holds a goroutine, so their number is limited.
func TestHangingToolIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		var begun atomic.Int64
		e, opts, _ := simple(t, func(context.Context, Call[none, none]) (Result, error) {
			begun.Add(1)
			<-hang
			return Result{}, nil
		}, writes, `category: "action"`)
		r := mustLoad(t, opts, e)
		for range maxLeftBehind + 5 {
			r.Snapshot().Execute(t.Context(), "probe", spec.ModeText, nil, Session{})
		}
		env := r.Snapshot().Execute(t.Context(), "probe", spec.ModeText, nil, Session{})
		checkEnvelope(t, env)
		if begun.Load() != maxLeftBehind || env.Error.Type != ErrorTransient || !env.Error.Retryable || env.Error.PartialSideEffects || !strings.Contains(env.Error.Message, "hang") {
			t.Errorf("%d begun, got %s", begun.Load(), env.Encode())
		}
		close(hang)
		if err := r.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if env := r.Snapshot().Execute(t.Context(), "probe", spec.ModeText, nil, Session{}); !env.OK {
			t.Errorf("afterwards: %s", env.Encode())
		}
	})
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := make(chan struct{})
		begun := 0
		e, opts, logged := simple(t, func(ctx context.Context, _ Call[none, none]) (Result, error) {
			begun++
			close(started)
			<-ctx.Done()
			return Result{}, ctx.Err()
		}, writes, `category: "action"`, `idempotent: false`)
		r := mustLoad(t, opts, e)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-started; cancel() }()
		env := r.Snapshot().Execute(ctx, "probe", spec.ModeText, nil, Session{})
		checkEnvelope(t, env)
		if env.Error.Type != ErrorInternal || !strings.Contains(env.Error.Message, "cancelled before it was finished") || !env.Error.PartialSideEffects || env.Error.Retryable {
			t.Errorf("got %s", env.Encode())
		}
		env = r.Snapshot().Execute(ctx, "probe", spec.ModeText, nil, Session{})
		checkEnvelope(t, env)
		if begun != 1 || !strings.Contains(env.Error.Message, "before it began") || env.Error.PartialSideEffects {
			t.Errorf("%d begun, got %s", begun, env.Encode())
		}
		if got := logged.String(); strings.Count(got, "tool failed") != 1 || strings.Count(got, "tool cancelled") != 1 || strings.Count(got, "ERROR") != 1 {
			t.Errorf("the log is\n%s", got)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		started = make(chan struct{})
		env = r.Snapshot().Execute(short, "probe", spec.ModeText, nil, Session{})
		if !strings.Contains(env.Error.Message, "in the time that was left") || !strings.Contains(logged.String(), "tool failed") {
			t.Errorf("got %s, the log is\n%s", env.Encode(), logged)
		}
	})
}

// TestFinishedAtTheDeadline: a finished result is used, however late.
func TestFinishedAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, opts, _ := simple(t, func(ctx context.Context, _ Call[none, none]) (Result, error) {
			<-ctx.Done()
			return Result{Data: "done all the same"}, nil
		})
		r := mustLoad(t, opts, e)
		const calls = 200
		for range calls {
			env := r.Snapshot().Execute(t.Context(), "probe", spec.ModeText, nil, Session{})
			checkEnvelope(t, env)
			if !env.OK && !strings.Contains(env.Error.Message, "did not finish") {
				t.Errorf("got %s", env.Encode())
			}
			synctest.Wait()
		}
		if s := r.Stats()["probe"]; s.Running != 0 || s.LeftBehind != 0 || s.OK+s.Abandoned != calls || s.Abandoned != s.Errors[ErrorTransient] {
			t.Errorf("counters: %+v", s)
		}
	})
}

func TestCallSeesItsSession(t *testing.T) {
	type args struct {
		Query string `json:"query"`
	}
	var got Call[args, none]
	e := entry(t, testutil.KBSearchSchema, `toolId: "probe"`, `preview: null`, `clamp: null`, `idempotencyKey: "{query}"`,
		`parameters: {"type":"object","properties":{"query":{"type":"string"}},"additionalProperties":false}`)
	r := mustLoad(t, Options{Handlers: map[string]Handler{"probe": Bind(func(_ context.Context, call Call[args, none]) (Result, error) {
		got = call
		return Result{}, nil
	})}}, e)
	session := Session{ID: "s", UserID: "u", ConversationID: "c", Agent: "a", Turn: 3, Now: time.Unix(5, 0).UTC()}
	p, _ := r.Snapshot().Prepare("probe", spec.ModeVoice, json.RawMessage(`{"query":"x"}`))
	p.Run(t.Context(), session)
	session.Mode, session.ToolsVersion = spec.ModeVoice, r.Snapshot().Version()
	want := Call[args, none]{Args: args{"x"}, Session: session, Tool: "probe", IdempotencyKey: `"x"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	p.SetIdempotencyKey("other")
	p.Run(t.Context(), session)
	if got.IdempotencyKey != "other" {
		t.Errorf("the key is %q", got.IdempotencyKey)
	}
}

func TestDescribeTool(t *testing.T) {
	e := entry(t, testutil.KBSearchSchema, `toolId: "text_only"`, `allowedModes: ["text"]`, `clamp: null`)
	s := mustLoad(t, Options{Handlers: map[string]Handler{"kb_search": Bind(kbHandler), "text_only": Bind(kbHandler)}}, entry(t, testutil.KBSearchSchema), e).Snapshot()
	ask := func(mode spec.Mode, tool string) Envelope {
		env := s.Execute(t.Context(), spec.DescribeTool, mode, json.RawMessage(`{"tool":"`+tool+`"}`), Session{})
		checkEnvelope(t, env)
		return env
	}
	if env := ask(spec.ModeVoice, "kb_search"); string(env.Data) != `{"tool":"kb_search","version":"1.2.0","category":"retrieval","guide":"# kb_search\n\nA tool.\n"}` {
		t.Errorf("got %s", env.Encode())
	}
	if env := ask(spec.ModeVoice, spec.DescribeTool); !env.OK {
		t.Errorf("got %s", env.Encode())
	}
	for _, tool := range []string{"text_only", "gone"} {
		env := ask(spec.ModeVoice, tool)
		if env.OK || env.Error.Type != ErrorNotFound || env.Error.Suggestion != "The tools are: describe_tool, kb_search." {
			t.Errorf("%s by voice: %s", tool, env.Encode())
		}
	}
	if env := ask(spec.ModeText, "text_only"); !env.OK {
		t.Errorf("got %s", env.Encode())
	}
	described, _ := s.Tool(spec.DescribeTool)
	if _, problems := spec.Parse([]byte(strings.Replace(string(mustMarshal(t, described.Spec)), "describe_tool", "other", 1))); len(problems) > 0 {
		t.Errorf("the built-in tool would be refused: %v", problems)
	}
}

// TestConcurrentCalls is for the race detector.
func TestConcurrentCalls(t *testing.T) {
	r := mustLoad(t, Options{Dev: true, Handlers: map[string]Handler{"kb_search": Bind(kbHandler)}}, entry(t, testutil.KBSearchSchema))
	again := encodeFile(t, entry(t, testutil.KBSearchSchema))
	shared, _ := r.Snapshot().Prepare("kb_search", spec.ModeText, json.RawMessage(`{"query":"shared"}`))
	synctest.Test(t, func(t *testing.T) {
		for i := range 8 {
			go func() {
				s := r.Snapshot()
				for range 20 {
					env := s.Execute(t.Context(), "kb_search", spec.ModeVoice, json.RawMessage(fmt.Sprintf(`{"query":"q%d","top_k":10}`, i)), Session{})
					if !env.OK || !strings.Contains(string(env.Data), fmt.Sprintf(`"q%d"`, i)) {
						t.Errorf("got %s", env.Encode())
					}
					if env := shared.Run(t.Context(), Session{}); !env.OK {
						t.Errorf("got %s", env.Encode())
					}
					r.Stats()
				}
				if err := r.Reload(again); err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
	})
	if s := r.Stats()["kb_search"]; s.OK != 320 || s.Running != 0 {
		t.Errorf("counters: %+v", s)
	}
}

// TestEndedWhileCancelled: a handler that has ended is not abandoned, in any order.
func TestEndedWhileCancelled(t *testing.T) {
	var cancel context.CancelFunc
	e, opts, _ := simple(t, func(context.Context, Call[none, none]) (Result, error) {
		cancel()
		return Result{Data: strings.Repeat("x", 1000)}, nil
	})
	r := mustLoad(t, opts, e)
	const calls = 3000
	for range calls {
		ctx, stop := context.WithCancel(t.Context())
		cancel = stop
		r.Snapshot().Execute(ctx, "probe", spec.ModeText, nil, Session{})
		stop()
		if err := r.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if s := r.Stats()["probe"]; s.OK+s.Abandoned != calls || s.Running != 0 || s.LeftBehind != 0 {
		t.Errorf("counters: %+v", s)
	}
}

// TestLateHandlerInItsOwnWords forces a handler to end before its timeout is noticed: any unnamed error is then a
// timeout.
func TestLateHandlerInItsOwnWords(t *testing.T) {
	ctx, cancel := context.WithDeadlineCause(t.Context(), time.Unix(0, 0), errDeadline)
	defer cancel()
	tool := &Tool{Entry: Entry{Spec: spec.Spec{ToolID: "probe", TimeoutMS: 2000, SideEffects: spec.SideEffectsWrites}}}
	o := tool.late(ctx, outcome{err: errors.New("gave up"), unnamed: true})
	if e := tool.told(o); e.Type != ErrorTransient || e.Retryable || !e.PartialSideEffects || !strings.Contains(o.err.Error(), "gave up") {
		t.Errorf("reported %+v of %v", e, o.err)
	}
	if o := tool.late(ctx, outcome{err: errPanic}); tool.told(o).Type != ErrorInternal {
		t.Errorf("a panic is reported as %+v", tool.told(o))
	}
	if o := tool.late(ctx, outcome{err: errPanic, told: &Error{Type: ErrorConflict}}); tool.told(o).Type != ErrorConflict {
		t.Errorf("a named error is reported as %+v", tool.told(o))
	}
}
