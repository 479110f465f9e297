package session

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/audit"
	"voicegw/internal/auth"
	"voicegw/orchestrator"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
	"voicegw/transport"
)

// audits collects the audit records of a session.
type audits struct {
	mu  sync.Mutex // guards the following field
	all []audit.Record
}

func (a *audits) write(r audit.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, r)
}

// inspectStage has a tool "act" that takes 40 ms, returns the given intents, and has an argument with a default and a
// limit.
func inspectStage(t *testing.T, records *audits, change func(*Options), wishes ...registry.Intent) *stage {
	t.Helper()
	e := entry("act", "1.0.0")
	e.Parameters = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","default":9}},"additionalProperties":false}`)
	e.Forms = registry.Forms{OpenAI: e.Parameters, OpenAIChat: e.Parameters, Gemini: e.Forms.Gemini}
	e.Clamp = map[spec.Mode]map[string]int{spec.ModeVoice: {"n": 3}}
	act := handlerFunc(func(context.Context) (registry.Result, error) {
		pass(40 * time.Millisecond)
		return registry.Result{Data: "done", Intents: wishes}, nil
	})
	tools, err := registry.Load(registrytest.File(t, e), registry.Options{Handlers: map[string]registry.Handler{"act": act.bind()}})
	if err != nil {
		t.Fatal(err)
	}
	return newStage(t, hearing, func(o *Options) {
		o.Tools, o.Policy.Tools.Budget, o.Audit = tools.Snapshot, roomy, records.write
		if change != nil {
			change(o)
		}
	})
}

// enter begins a session with an admission changed by the test.
func (st *stage) enter(text string, change func(*Admission)) *testClient {
	st.t.Helper()
	a, err := st.m.Admit(someone, Coming{})
	if err != nil {
		st.t.Fatal(err)
	}
	change(a)
	c := newTestClient()
	c.say(text)
	st.m.Start(a, c)
	return c
}

// callTool makes the model call a tool and waits for the effects.
func callTool(model *fakeConn, turn, tool, args string) {
	model.Emit(transport.InputCommitted{Item: "u" + turn}, transport.ResponseStarted{ID: "r" + turn},
		transport.ToolCall{Call: "c" + turn, ID: "call_of_the_model_" + turn, Name: tool, Args: json.RawMessage(args)},
		transport.ResponseDone{ID: "r" + turn, Status: transport.ResponseCompleted})
	pass(50 * time.Millisecond)
	synctest.Wait()
}

// inspections returns the inspect messages.
func (c *testClient) inspections() []map[string]any {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []map[string]any
	for _, m := range c.texts {
		if typ, _ := m["type"].(string); strings.HasPrefix(typ, "inspect.") {
			found = append(found, m)
		}
	}
	return found
}

// TestInspectIsAllowed: only a client that asks gets inspect messages, and only if the connection or the ticket allows
// it. Other clients may talk, without these messages.
func TestInspectIsAllowed(t *testing.T) {
	for name, tc := range map[string]struct {
		asks, connection, ticket, with bool // with a ticket
		want                           bool
	}{
		"allowed, not asked":                                  {connection: true, ticket: true, with: true},
		"asked, not allowed":                                  {asks: true},
		"asked, ticket without the grant":                     {asks: true, with: true},
		"allowed by the connection":                           {asks: true, connection: true, want: true},
		"allowed by the ticket":                               {asks: true, ticket: true, with: true, want: true},
		"allowed by the connection, ticket without the grant": {asks: true, connection: true, with: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				desk := &counter{ticket: ticketed}
				desk.ticket.Inspect = tc.ticket
				desk.ticket.PendingRequest = ""
				st := inspectStage(t, &audits{}, desk.give, registry.SuppressTranscript(true))
				text := startText
				if tc.asks {
					text = startWith(`,"inspect":true`)
				}
				c := st.enter(text, func(a *Admission) {
					if tc.connection {
						a.Principal.Scopes = auth.ScopeInspect
					}
					if tc.with {
						a.Ticket = secret
					}
				})
				model := st.fake.Accept(t)
				synctest.Wait()
				callTool(model, "1", "act", `{}`)
				c.say(`{"type":"session.end"}`)
				synctest.Wait()
				c.expect(t, "session.started", "turn.started", "tool.started", "tool.ended", "session.ended client_ended")
				if m := c.last(t, "session.started"); (m["inspect"] == true) != tc.want {
					t.Errorf("session.started has inspect %v", m["inspect"])
				}
				if got := c.inspections(); (len(got) > 0) != tc.want {
					t.Errorf("inspect messages: %v", got)
				}
			})
		})
	}
}

// TestInspectedCall: the end of each call is followed by all its data: the audit record, the arguments as run or as
// requested, the answer, and the times of waiting and running.
func TestInspectedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		records := &audits{}
		st := inspectStage(t, records, nil)
		c := st.enter(startWith(`,"inspect":true,"client":{"id":"ada"}`), func(a *Admission) { a.Principal.Scopes = auth.ScopeInspect })
		model := st.fake.Accept(t)
		synctest.Wait()
		callTool(model, "1", "act", ``)
		callTool(model, "2", "make_coffee", `{"strong": true, "cups": 2}`)
		callTool(model, "3", "make_coffee", `{"strong`)
		callTool(model, "4", "act", `{"n":"many"}`)
		callTool(model, "5", "make_coffee", "{\"cups\":\"\xff\"}")
		want := []struct {
			tool, args  string
			queued, ran float64
			ok          bool
		}{
			{"act", `{"n":3}`, 0, 40, true},
			{"make_coffee", `{"strong":true,"cups":2}`, 0, 0, false},
			{"make_coffee", `"{\"strong"`, 0, 0, false},
			{"act", `{"n":"many"}`, 0, 0, false},
			{"make_coffee", `"{\"cups\":\"\ufffd\"}"`, 0, 0, false},
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		n := 0
		for i, m := range c.texts {
			if m["type"] != "inspect.call" {
				continue
			}
			w, before := want[n], c.texts[i-1]
			if before["type"] != "tool.ended" || before["call_id"] != m["call_id"] || before["turn"] != m["turn"] {
				t.Errorf("the message follows %v", before)
			}
			var args any
			if err := json.Unmarshal([]byte(w.args), &args); err != nil {
				t.Fatal(err)
			}
			envelope, _ := m["envelope"].(map[string]any)
			if diff := cmp.Diff(args, m["args"]); diff != "" || m["tool"] != w.tool || m["queued_ms"] != w.queued || m["run_ms"] != w.ran || envelope["ok"] != w.ok {
				t.Errorf("%s %s: %v", w.tool, diff, m)
			}
			audited := records.all[n]
			audited.Args = nil
			if diff := cmp.Diff(decoded(t, audited), m["record"]); diff != "" || audited.UserID != "ada" || audited.SessionID == "" {
				t.Errorf("the record differs from the audit's: %s", diff)
			}
			if given := results(t, model)["c"+string(rune('1'+n))]; cmp.Diff(decoded(t, given), m["envelope"]) != "" {
				t.Errorf("the model got %+v, the client %v", given, m["envelope"])
			}
			n++
		}
		if n != len(want) || len(records.all) != n {
			t.Errorf("%d calls were shown and %d audited, want %d: %v", n, len(records.all), len(want), c.got)
		}
	})
}

// decoded returns v encoded as JSON and decoded again.
func decoded(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestInspectedWaiting: a call that waits for a free place is shown as waiting.
func TestInspectedWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := inspectStage(t, &audits{}, nil)
		c := st.enter(startWith(`,"inspect":true`), func(a *Admission) { a.Principal.Scopes = auth.ScopeInspect })
		model := st.fake.Accept(t)
		synctest.Wait()
		for i := range 5 {
			args := json.RawMessage(fmt.Sprintf(`{"n":%d}`, -i))
			model.Emit(transport.ToolCall{Call: fmt.Sprint("c", i), ID: fmt.Sprint("id", i), Name: "act", Args: args})
		}
		pass(time.Second)
		synctest.Wait()
		if m := c.last(t, "inspect.call"); m["call_id"] != "call_5" || m["queued_ms"] != 40.0 || m["run_ms"] != 40.0 {
			t.Errorf("the last one: %v", m)
		}
	})
}

// TestInspectedIntents: each intent of a tool is shown with its outcome.
func TestInspectedIntents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := inspectStage(t, &audits{}, nil, registry.SuppressAudio(false), registry.EndVoiceSession(registry.EndAfterCurrentTurn), registry.EndVoiceSession(registry.EndAfterFarewellSpoken))
		c := st.enter(startWith(`,"inspect":true`), func(a *Admission) { a.Principal.Scopes = auth.ScopeInspect })
		model := st.fake.Accept(t)
		synctest.Wait()
		callTool(model, "1", "act", `{}`)
		var got []map[string]any
		for _, m := range c.inspections() {
			if m["type"] == "inspect.intent" {
				delete(m, "seq")
				got = append(got, m)
			}
		}
		want := []map[string]any{
			{"type": "inspect.intent", "turn": 1.0, "intent": map[string]any{"type": "SUPPRESS_AUDIO", "value": false}, "applied": true},
			{"type": "inspect.intent", "turn": 1.0, "intent": map[string]any{"type": "END_VOICE_SESSION", "after": "current_turn"}, "applied": true},
			{"type": "inspect.intent", "turn": 1.0, "intent": map[string]any{"type": "END_VOICE_SESSION", "after": "farewell_spoken"}, "applied": false, "why": "the session is ending already"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// TestInspectedState: each change of the state is shown, and no state twice in a row; spoken or played audio is no
// change.
func TestInspectedState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := inspectStage(t, &audits{}, nil, registry.SuppressAudio(true))
		c := st.enter(startWith(`,"inspect":true`), func(a *Admission) { a.Principal.Scopes = auth.ScopeInspect })
		model := st.fake.Accept(t)
		synctest.Wait()
		model.Emit(transport.SpeechStarted{Item: "u1", AudioMS: 10}, transport.SpeechStopped{Item: "u1", AudioMS: 200, EndMS: 150})
		callTool(model, "1", "act", `{}`)
		model.Emit(transport.ResponseStarted{ID: "r2"})
		synctest.Wait()
		before := len(c.inspections())
		for range 5 {
			model.EmitAudio("a1", make([]byte, 960))
			c.speak(make([]byte, 640))
			synctest.Wait()
		}
		if after := len(c.inspections()); after != before {
			t.Errorf("audio has changed the state %d times", after-before)
		}
		c.say(`{"type":"session.end"}`)
		synctest.Wait()
		var got []string
		for _, m := range c.inspections() {
			if m["type"] == "inspect.state" {
				got = append(got, shownState(m))
			}
		}
		want := []string{
			"active", "active speaking", "active",
			"active turn budget=0", "active turn responding budget=0", "active turn responding awaiting=1 budget=1", "active turn awaiting=1 budget=1",
			"active turn quiet budget=1", "active turn responding quiet budget=1", "ended responding quiet",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// shownState formats a state.
func shownState(m map[string]any) string {
	s, _ := m["phase"].(string)
	if m["turn"] != nil {
		s += " turn"
	}
	for _, name := range []string{"speaking", "responding", "muted"} {
		if m[name] == true {
			s += " " + name
		}
	}
	if m["awaiting"] == 1.0 {
		s += " awaiting=1"
	}
	if off, _ := m["suppressed"].(map[string]any); off["audio"] == true && off["transcript"] == false {
		s += " quiet"
	}
	if b, ok := m["budget"].(map[string]any); ok {
		total, _ := b["total"].(map[string]any)
		s += fmt.Sprint(" budget=", total["used"])
	}
	return s
}

// TestSessionStartedFields: session.started contains the requested or configured voice, and the conversation that
// continues.
func TestSessionStartedFields(t *testing.T) {
	for name, tc := range map[string]struct {
		fields, configured string
		voice, talk        any
	}{
		"nothing":    {},
		"requested":  {fields: `,"voice":"Puck"`, configured: "Kore", voice: "Puck"},
		"configured": {configured: "Kore", voice: "Kore"},
		"continues":  {fields: `,"conversation_id":"c-7","client":{"id":"ada"}`, talk: "c-7"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, hearing, func(o *Options) { o.Agent.Voices = map[string]string{"fake": tc.configured} })
				c := st.connect(startWith(tc.fields))
				st.fake.Accept(t)
				synctest.Wait()
				if m := c.last(t, "session.started"); m["voice"] != tc.voice || m["conversation_id"] != tc.talk {
					t.Errorf("voice %v, conversation %v", m["voice"], m["conversation_id"])
				}
			})
		})
	}
}

// TestLatencyInWholeMilliseconds: the parts add up to the total also if each has a fraction.
func TestLatencyInWholeMilliseconds(t *testing.T) {
	for _, us := range [][3]int{{1500, 1500, 1500}, {999, 999, 999}, {0, 700, 400}, {500_400, 300_700, 1_900}} {
		l := orchestrator.Latency{
			Detection: time.Duration(us[0]) * time.Microsecond, Provider: time.Duration(us[1]) * time.Microsecond, Gateway: time.Duration(us[2]) * time.Microsecond,
		}
		l.Total = l.Detection + l.Provider + l.Gateway
		got := latency(&l)
		if got.SpeechEndToFirstAudioMS != got.DetectionMS+got.ProviderMS+got.GatewayMS || got.SpeechEndToFirstAudioMS != l.Total.Milliseconds() || got.GatewayMS < 0 || got.ProviderMS < 0 {
			t.Errorf("%v: %+v", us, *got)
		}
	}
	if got := latency(nil); got != (*protocol.Latency)(nil) {
		t.Errorf("without times: %+v", got)
	}
}

// TestModelAddr: the session knows its address at the model until it ends.
func TestModelAddr(t *testing.T) {
	fake := newFakeModel(hearing)
	fake.Info.LocalAddr = "192.0.2.1:40000"
	st := newStage(t, hearing, func(o *Options) {
		o.Transports = map[string]transport.Transport{"fake": fake}
	})
	st.connect(startWith(`,"pending_request":"Hello"`))
	conn := fake.Accept(t)
	conn.NextControl(t) // the session has begun
	list := st.m.Sessions()
	if len(list) != 1 || list[0].ModelAddr != fake.Info.LocalAddr {
		t.Errorf("the session is at %+v", list)
	}
	s := st.m.roster.visit(list[0].ID)
	defer s.visitors.Done()
	conn.FailRecv(errClosed)
	<-s.done
	if got := s.running().ModelAddr; got != "" {
		t.Errorf("an ended session has the address %s", got)
	}
}
