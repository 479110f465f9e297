package gemini

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/sim/scenario"
	"voicegw/sim/voice"
	"voicegw/sim/wire"
)

// recorder is an outlet without a connection.
type recorder struct {
	events []string
	closed bool
}

func (r *recorder) Send(event string, _ int, _ []byte) []scenario.Fault {
	r.events = append(r.events, event)
	return nil
}
func (r *recorder) At(scenario.Point) []scenario.Fault   { return nil }
func (r *recorder) Do([]scenario.Fault) []scenario.Fault { return nil }
func (r *recorder) Close(int, string)                    { r.closed = true }
func (r *recorder) Closed() bool                         { return r.closed }

// newTestSession is a session on a recorder, for state that the wire does not show.
func newTestSession(t *testing.T, setup string) (*session, *recorder) {
	t.Helper()
	m, cerr := parseMessage([]byte(setup))
	if cerr != nil {
		t.Fatal(cerr)
	}
	cfg, cerr := configure(m.Setup, route{version: "v1beta"})
	if cerr != nil {
		t.Fatal(cerr)
	}
	h := New(wire.Options{})
	out := &recorder{}
	conv := &conversation{
		origin: &origin{model: cfg.Model, began: time.Now(), ids: wire.NewIDs(1)}, dialogue: h.opts.Scenario.NewDialogue(1),
	}
	return h.newSession(cfg, conv, out, slog.New(slog.DiscardHandler)), out
}

func must(t *testing.T, s *session, now time.Time, frame string) {
	t.Helper()
	m, err := parseMessage([]byte(frame))
	if err == nil {
		err = s.handle(now, m)
	}
	if err != nil {
		t.Fatalf("%s: %v", frame, err)
	}
}

func TestQueueIsBounded(t *testing.T) {
	s, _ := newTestSession(t, setupFor(model25, `"realtimeInputConfig":{"activityHandling":"NO_INTERRUPTION"}`))
	now := time.Now()
	for range 3 * maxQueued {
		must(t, s, now, `{"realtimeInput":{"text":"hello"}}`)
	}
	if len(s.queue) != maxQueued {
		t.Errorf("%d inputs wait, want %d", len(s.queue), maxQueued)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	s, _ := newTestSession(t, setupFor(model25, ""))
	for i := range maxHistory + 10 {
		must(t, s, time.Now(), fmt.Sprintf(`{"clientContent":{"turns":[{"role":"model","parts":[{"text":"line %d"}]}]}}`, i))
	}
	h := s.conv.history
	if newest := h[len(h)-1].Text; len(h) > maxHistory || len(h) < maxHistory/2 || newest != fmt.Sprint("line ", maxHistory+9) {
		t.Errorf("%d entries, the newest %q", len(h), newest)
	}
}

func TestCallsAreBounded(t *testing.T) {
	var c calls
	for i := range maxCalls + 5 {
		c.add(&call{id: fmt.Sprint(i)})
	}
	if newest := c.all[len(c.all)-1].id; len(c.all) > maxCalls || len(c.all) < maxCalls/2 || newest != fmt.Sprint(maxCalls+4) {
		t.Errorf("%d calls, the newest %q", len(c.all), newest)
	}
}

func TestDepthIsBounded(t *testing.T) {
	nested := func(n int) string {
		return `{"toolResponse":{"functionResponses":[{"response":{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}}]}}`
	}
	if _, err := parseMessage([]byte(nested(maxDepth - 5))); err != nil {
		t.Errorf("within the bound: %v", err)
	}
	if _, err := parseMessage([]byte(nested(maxDepth))); err == nil {
		t.Error("a message nested too deep was accepted")
	}
}

// TestResultOfCancelledCallIsLost: it does not become part of a later answer.
func TestResultOfCancelledCallIsLost(t *testing.T) {
	s, _ := newTestSession(t, setupFor(model31, `"tools":[{"functionDeclarations":[{"name":"get_weather","description":"weather for a city","parameters":{"type":"OBJECT","properties":{"city":{"type":"STRING"}}}}]}]`))
	now := time.Now()
	must(t, s, now, typed("What is the weather in London?"))
	if len(s.conv.calls.all) != 1 {
		t.Fatalf("%d calls", len(s.conv.calls.all))
	}
	id := s.conv.calls.all[0].id
	s.interrupt(now)
	must(t, s, now, `{"toolResponse":{"functionResponses":[{"id":"`+id+`","response":{"output":"late"}}]}}`)
	if got := s.conv.calls.take(false); len(got) != 0 {
		t.Errorf("the model will see %+v", got)
	}
	if n := s.opts.Stats.Results.Load(); n != 0 {
		t.Errorf("counted %d results", n)
	}
}

// TestIDUsedAgain: a scenario gives two calls one id; each result is for the waiting call.
func TestIDUsedAgain(t *testing.T) {
	s, _ := newTestSession(t, setupFor(model31, ""))
	s.conv.dialogue = mustScenario(t, `{rules: [{when: {text: any}, do: [{call: {tool: a, id: fc_1}}, {then: [{call: {tool: b, id: fc_1}}, {then: [{say: Done.}]}]}]}]}`).NewDialogue(1)
	now := time.Now()
	must(t, s, now, typed("go"))
	for _, output := range []string{"first", "second"} {
		must(t, s, now, `{"toolResponse":{"functionResponses":[{"id":"fc_1","response":{"output":"`+output+`"}}]}}`)
	}
	if len(s.conv.calls.all) != 2 {
		t.Fatalf("%d calls", len(s.conv.calls.all))
	}
	for i, want := range []string{"first", "second"} {
		if k := s.conv.calls.all[i]; k.id != "fc_1" || k.state != callAnswered || !strings.Contains(k.result.Output, want) {
			t.Errorf("call %d: %+v", i+1, k)
		}
	}
}

// TestUnnamedResult: 3.8 takes a result without a name for a failure (roomkit#42); earlier models accept it.
func TestUnnamedResult(t *testing.T) {
	for model, want := range map[string]string{model31: "foggy", model38: "system error"} {
		s, _ := newTestSession(t, setupFor(model, `"tools":[{"functionDeclarations":[{"name":"get_weather","description":"weather for a city"}]}]`))
		now := time.Now()
		must(t, s, now, typed("What is the weather?"))
		if len(s.conv.calls.all) != 1 {
			t.Fatalf("%s: %d calls", model, len(s.conv.calls.all))
		}
		must(t, s, now, `{"toolResponse":{"functionResponses":[{"id":"`+s.conv.calls.all[0].id+`","response":{"output":"foggy"}}]}}`)
		if last := s.conv.history[len(s.conv.history)-1]; last.Who != "result" || !strings.Contains(last.Text, want) {
			t.Errorf("%s: remembered %+v", model, last)
		}
	}
}

// TestOnlySentWordsAreRemembered: after an interruption the model does not remember the rest of its line.
func TestOnlySentWordsAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, out := newTestSession(t, setupFor(model25, ""))
		s.speak = func(_, _ string) voice.Utterance {
			return New(wire.Options{}).speak("", "one two three four five six seven eight nine ten")
		}
		now := time.Now()
		must(t, s, now, typed("go"))
		for len(out.events) < 12 {
			at, ok := s.due()
			if !ok {
				t.Fatal("the model has no further text")
			}
			now = at
			s.tick(now)
		}
		s.interrupt(now)
		last := s.conv.history[len(s.conv.history)-1]
		if last.Who != "model" || !strings.HasPrefix("one two three four five six seven eight nine ten", last.Text) || len(last.Text) > 30 {
			t.Errorf("remembered %+v", last)
		}
	})
}

func TestTokensAreBounded(t *testing.T) {
	var s tokenStore
	for range maxTokens + 2 {
		if _, refused := s.create(strings.NewReader(""), time.Now()); refused != nil {
			t.Fatal(refused)
		}
	}
	if len(s.tokens) != maxTokens || len(s.order) != maxTokens {
		t.Errorf("%d tokens, %d in order", len(s.tokens), len(s.order))
	}
}
