package session

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/testutil"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/transport"
)

// noArgs are the arguments of these tools; N only distinguishes calls.
type noArgs struct {
	N int `json:"n"`
}

// handlerFunc is a handler without arguments and needs.
type handlerFunc func(ctx context.Context) (registry.Result, error)

func (f handlerFunc) bind() registry.Handler {
	return registry.Bind(func(ctx context.Context, _ registry.Call[noArgs, struct{}]) (registry.Result, error) { return f(ctx) })
}

// entry returns a voice tool that may take a minute.
func entry(id, version string) registry.Entry {
	object := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`)
	return registry.Entry{
		Spec: spec.Spec{
			ToolID: id, Version: version, Description: "A tool of a test.", Category: spec.CategoryUtility,
			SideEffects: spec.SideEffectsNone, Idempotent: true, AllowedModes: []spec.Mode{spec.ModeVoice},
			LatencyBudgetMS: 1000, TimeoutMS: 60_000, Parameters: object,
		},
		Summary: "A tool of a test.", Guide: "# " + id + "\n",
		Forms: registry.Forms{OpenAI: object, OpenAIChat: object, Gemini: json.RawMessage(`{"type":"OBJECT","properties":{"n":{"type":"INTEGER"}}}`)},
	}
}

// roomy is a budget that no turn here exhausts.
var roomy = calls.Budget{Retrieval: 100, Total: 100, ToolTime: -1}

// withTools loads a registry of one tool and gives it to a stage.
func withTools(t *testing.T, e registry.Entry, f handlerFunc, dev bool) (*stage, *registry.Registry) {
	t.Helper()
	return withToolsOf(t, hearing, e, f, dev)
}

// withToolsOf is withTools for a model with other capabilities.
func withToolsOf(t *testing.T, caps transport.Capabilities, e registry.Entry, f handlerFunc, dev bool) (*stage, *registry.Registry) {
	t.Helper()
	tools, err := registry.Load(registrytest.File(t, e), registry.Options{
		Handlers: map[string]registry.Handler{e.ToolID: f.bind()}, Dev: dev,
	})
	if err != nil {
		t.Fatal(err)
	}
	tools.Lock()
	return newStage(t, caps, func(o *Options) { o.Tools, o.Policy.Tools.Budget = tools.Snapshot, roomy }), tools
}

// asked makes the model call a tool once for each name in calls, each time with other arguments.
func asked(model *fakeConn, tool string, calls ...string) {
	model.Emit(transport.InputCommitted{Item: "u1"}, transport.ResponseStarted{ID: "r1"})
	for i, call := range calls {
		model.Emit(transport.ToolCall{Call: call, ID: "id-" + call, Name: tool, Args: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))})
	}
	model.Emit(transport.ResponseDone{ID: "r1", Status: transport.ResponseCompleted})
	synctest.Wait()
}

// results returns the envelopes that the model got, by call.
func results(t *testing.T, model *fakeConn) map[string]registry.Envelope {
	t.Helper()
	all := map[string]registry.Envelope{}
	for _, cmd := range model.Commands() {
		r, ok := cmd.(transport.ToolResult)
		if !ok {
			continue
		}
		var env registry.Envelope
		if err := json.Unmarshal(r.Output, &env); err != nil {
			t.Fatal(err)
		}
		if _, twice := all[r.Call]; twice {
			t.Errorf("%s was answered twice", r.Call)
		}
		all[r.Call] = env
	}
	return all
}

// TestSlowToolDelaysNothing: while a tool takes half a minute, audio passes in both directions without delay, and the
// result is sent when the tool ends.
func TestSlowToolDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, _ := withTools(t, entry("slow", "1.0.0"), func(context.Context) (registry.Result, error) {
			<-time.After(30 * time.Second) // ignores its context
			return registry.Result{Data: "done"}, nil
		}, false)
		c, model := st.started()
		synctest.Wait()
		asked(model, "slow", "c1")
		began := time.Now()
		for second := range 20 {
			speech := testutil.Tone(16000, 440, -12, 20*time.Millisecond)
			before := len(model.Audio())
			c.speak(speech)
			item := "a" + string(rune('a'+second))
			model.EmitAudio(item, make([]byte, 960))
			model.Emit(transport.AudioDone{Item: item})
			synctest.Wait()
			if got := len(model.Audio()) - before; got != len(speech) {
				t.Fatalf("second %d: the model heard %d of %d bytes", second, got, len(speech))
			}
			if want := "audio.end " + item; !slices.Contains(c.log(), want) {
				t.Fatalf("second %d: the client did not get %s:\n%s", second, want, strings.Join(c.log(), "\n"))
			}
			if late := time.Since(began) - time.Duration(second)*time.Second; late != 0 {
				t.Fatalf("second %d: audio waited %s", second, late)
			}
			pass(time.Second)
		}
		if n := len(results(t, model)); n != 0 {
			t.Fatalf("%d results before the tool has ended", n)
		}
		pass(10 * time.Second)
		synctest.Wait()
		env := results(t, model)["c1"]
		if !env.OK || string(env.Data) != `"done"` || env.Meta.DurationMS != 30_000 || !env.Meta.LatencyBudgetExceeded {
			t.Errorf("the model got %+v", env)
		}
		c.expect(t, "tool.started", "audio.end aa", "audio.end at", "tool.ended")
		if got := c.last(t, "tool.ended"); got["ok"] != true || got["duration_ms"] != 30_000.0 || got["category"] != "utility" {
			t.Errorf("the client got %v", got)
		}
	})
}

// TestSessionKeepsItsSnapshot: after a reload a session continues with its first set of tools, and reports its version;
// a new session has the new tools.
func TestSessionKeepsItsSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, tools := withTools(t, entry("clock", "1.0.0"), func(context.Context) (registry.Result, error) {
			return registry.Result{}, nil
		}, true)
		old, oldModel := st.started()
		synctest.Wait()
		version := tools.Snapshot().Version()
		changed := entry("clock", "2.0.0")
		changed.Description = "Another one."
		if err := tools.Reload(registrytest.File(t, changed)); err != nil {
			t.Fatal(err)
		}
		young, youngModel := st.started()
		synctest.Wait()
		for _, s := range []struct {
			client               *testClient
			model                *fakeConn
			version, tool, about string
		}{
			{old, oldModel, version, "1.0.0", "A tool of a test."},
			{young, youngModel, tools.Snapshot().Version(), "2.0.0", "Another one."},
		} {
			if got := s.client.last(t, "session.started")["tools_version"]; !strings.HasPrefix(fmt.Sprint(got), s.version+"+") {
				t.Errorf("session.started says %v, want %s and its enums", got, s.version)
			}
			if got := s.model.Setup().Tools; len(got) != 2 || got[0].Description != s.about || got[1].Name != spec.DescribeTool {
				t.Errorf("the model was set up with %+v, want %q and describe_tool", got, s.about)
			}
			asked(s.model, "clock", "c1")
			env := results(t, s.model)["c1"]
			if !env.OK || env.Meta.ToolVersion != s.tool || env.Meta.RegistryVersion != s.version {
				t.Errorf("the call ran as %+v, want %s of %s", env.Meta, s.tool, s.version)
			}
		}
	})
}

// crew is a tool that runs until it is released, and counts its calls.
type crew struct {
	mu                       sync.Mutex // guards the following fields
	running, most, cancelled int
	release                  chan struct{}
}

func (w *crew) run(ctx context.Context) (registry.Result, error) {
	w.mu.Lock()
	w.running++
	w.most = max(w.most, w.running)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.running--
		w.mu.Unlock()
	}()
	select {
	case <-w.release:
		return registry.Result{}, nil
	case <-ctx.Done():
		w.mu.Lock()
		w.cancelled++
		w.mu.Unlock()
		return registry.Result{}, ctx.Err()
	}
}

func (w *crew) counts() (running, most, cancelled int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.running, w.most, w.cancelled
}

// four is the number of tools that may run at once in a session.
const four = 4

// TestWithdrawnWhileWaiting: a waiting call that the model cancels never begins, and delays no other call.
func TestWithdrawnWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &crew{release: make(chan struct{})}
		e := entry("work", "1.0.0")
		e.Cancellable = true
		st, _ := withTools(t, e, w.run, false)
		c, model := st.started()
		synctest.Wait()
		calls := []string{"c1", "c2", "c3", "c4", "c5"}
		asked(model, "work", calls...)
		// The test does not know which calls wait, so it cancels all.
		model.Emit(transport.ToolCancelled{Calls: calls})
		synctest.Wait()
		if running, most, cancelled := w.counts(); running != 0 || most != four || cancelled != four {
			t.Errorf("%d still run, %d at most, %d were stopped", running, most, cancelled)
		}
		ended := 0
		for _, line := range c.log() {
			if strings.HasPrefix(line, "tool.ended") {
				ended++
			}
		}
		if ended != len(calls) || len(results(t, model)) != 0 {
			t.Errorf("%d calls have ended and %d were answered", ended, len(results(t, model)))
		}
	})
}

// TestFourToolsAtOnce: further calls wait for a free place, and each is answered once.
func TestFourToolsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &crew{release: make(chan struct{})}
		st, _ := withTools(t, entry("work", "1.0.0"), w.run, false)
		_, model := st.started()
		synctest.Wait()
		calls := []string{"c1", "c2", "c3", "c4", "c5", "c6", "c7"}
		asked(model, "work", calls...)
		if running, _, _ := w.counts(); running != four {
			t.Errorf("%d run, want %d", running, four)
		}
		w.release <- struct{}{}
		synctest.Wait()
		if running, _, _ := w.counts(); running != four || len(results(t, model)) != 1 {
			t.Errorf("after one has ended %d run and %d are answered", running, len(results(t, model)))
		}
		close(w.release)
		synctest.Wait()
		got := results(t, model)
		for _, call := range calls {
			if !got[call].OK {
				t.Errorf("%s got %+v", call, got[call])
			}
		}
		if running, most, _ := w.counts(); running != 0 || most != four {
			t.Errorf("%d still run, %d at most", running, most)
		}
	})
}

// TestCancelledTool: a cancelled call is not answered; its tool is stopped if it can be, otherwise it runs to its end.
func TestCancelledTool(t *testing.T) {
	for name, cancellable := range map[string]bool{"can be stopped": true, "cannot": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &crew{release: make(chan struct{})}
				e := entry("work", "1.0.0")
				e.Cancellable = cancellable
				st, _ := withTools(t, e, w.run, false)
				c, model := st.started()
				synctest.Wait()
				asked(model, "work", "c1", "c2")
				model.Emit(transport.ToolCancelled{Calls: []string{"c1"}})
				synctest.Wait()
				running, _, cancelled := w.counts()
				if cancellable && (running != 1 || cancelled != 1) || !cancellable && (running != 2 || cancelled != 0) {
					t.Errorf("%d run, %d were stopped", running, cancelled)
				}
				close(w.release)
				synctest.Wait()
				got := results(t, model)
				if _, answered := got["c1"]; answered || !got["c2"].OK {
					t.Errorf("answered: %+v", got)
				}
				ended := 0
				for _, line := range c.log() {
					if strings.HasPrefix(line, "tool.ended") {
						ended++
					}
				}
				if ended != 2 {
					t.Errorf("the client got %d ends, want 2", ended)
				}
			})
		})
	}
}

// TestToolsAreAwaited: a session that ends stops the stoppable tools, starts no waiting call, and waits for the rest.
// Each call that ran is audited once as not delivered, and nothing more is sent.
func TestToolsAreAwaited(t *testing.T) {
	for name, tc := range map[string]struct{ cancellable, waits bool }{"can be stopped": {true, false}, "cannot": {false, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &crew{release: make(chan struct{})}
				e := entry("work", "1.0.0")
				e.Cancellable = tc.cancellable
				audited := &records{}
				st, _ := withTools(t, e, w.run, false)
				st.m.options().Audit = audited.add
				c, model := st.started()
				synctest.Wait()
				asked(model, "work", "c1", "c2", "c3", "c4", "c5", "c6")
				c.say(`{"type":"session.end"}`)
				synctest.Wait()
				c.ended(t, protocol.CloseDone) // the client does not wait for tools
				if over := st.m.Running() == 0; over == tc.waits {
					t.Errorf("session over: %t, want %t", over, !tc.waits)
				}
				if running, most, _ := w.counts(); most != four || tc.waits != (running == four) {
					t.Errorf("%d still run, %d at most", running, most)
				}
				close(w.release)
				synctest.Wait()
				stopped := 0
				if tc.cancellable {
					stopped = four
				}
				if running, most, cancelled := w.counts(); running != 0 || most != four || cancelled != stopped {
					t.Errorf("%d still run, %d at most, %d were stopped", running, most, cancelled)
				}
				if n := st.m.Running(); n != 0 {
					t.Errorf("%d sessions run", n)
				}
				if n := len(results(t, model)); n != 0 {
					t.Errorf("%d results were sent after the end", n)
				}
				all := audited.byCall(t)
				if len(all) != 6 {
					t.Fatalf("%d calls are audited, want 6: %v", len(all), all)
				}
				for i := range 6 {
					r, finished := all[fmt.Sprintf("call_%d", i+1)], i < four && !tc.cancellable
					if r.Delivered || r.NotDelivered != "session_over" || r.OK != finished || !finished && r.ErrorType != registry.ErrorInternal {
						t.Errorf("audited: %+v", r)
					}
				}
			})
		})
	}
}

// TestToolsEndWithTheProgram: tools that run when the gateway stops have the executor's grace period; then they are
// recorded in the ledger and no longer waited for.
func TestToolsEndWithTheProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &crew{release: make(chan struct{})}
		audited := &records{}
		st, _ := withTools(t, entry("work", "1.0.0"), w.run, false)
		st.m.options().Audit = audited.add
		c, model := st.started()
		synctest.Wait()
		asked(model, "work", "c1")
		began := time.Now()
		st.m.Close()
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("stopping took %s, want the grace period of 5 s", took)
		}
		// After the grace period the executor stops the running tools without waiting for them.
		synctest.Wait()
		c.ended(t, protocol.CloseServerLeaving)
		if r := audited.byCall(t)["call_1"]; r.OK || r.NotDelivered != "session_over" {
			t.Errorf("audited: %+v", r)
		}
		if running, _, cancelled := w.counts(); running != 0 || cancelled != 1 {
			t.Errorf("%d still run, %d were stopped", running, cancelled)
		}
	})
}

// TestPanickingTool: a tool that panics fails only its own call.
func TestPanickingTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, _ := withTools(t, entry("broken", "1.0.0"), func(context.Context) (registry.Result, error) {
			panic("oh")
		}, false)
		c, model := st.started()
		synctest.Wait()
		asked(model, "broken", "c1")
		env := results(t, model)["c1"]
		if env.OK || env.Error.Type != registry.ErrorInternal || strings.Contains(env.Error.Message, "oh") {
			t.Errorf("the model got %+v", env)
		}
		c.say(`{"type":"ping","t":1}`)
		synctest.Wait()
		c.expect(t, "tool.started", "tool.ended", "pong")
	})
}

// TestOwnToolNamesAreReserved: a tool with the name of a gateway's own tool would be declared twice, which ends
// sessions at some providers, or never be reached.
func TestOwnToolNamesAreReserved(t *testing.T) {
	tools, err := registry.Load(registrytest.File(t), registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []transport.SchemaForm{transport.SchemaJSON, transport.SchemaOpenAPI} {
		own := declarations(tools.Snapshot(), form, true)
		var names []string
		for _, tool := range own {
			names = append(names, tool.Name)
		}
		slices.Sort(names)
		// agent_switch is declared only if the agent may switch to others.
		want := slices.DeleteFunc(spec.ReservedNames(), func(name string) bool { return name == spec.AgentSwitch })
		if !slices.Equal(names, want) {
			t.Errorf("the gateway declares its own tools %v, want the reserved names %v", names, want)
		}
	}
}
