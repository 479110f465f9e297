package execute

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"voicegw/internal/audit"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/registrytest"
	"voicegw/registry/spec"
)

// asideNeeds are the needs of a tool with more output than its answer.
type asideNeeds struct {
	Messenger registry.Messenger
	Progress  registry.Progress
	Audit     registry.Audit
	Gallery   registry.Optional[registry.Gallery]
}

// aside is a conversation with one reading tool, look, and its output apart from answers.
type aside struct {
	*fixture
	do func(context.Context, registry.Call[args, asideNeeds]) error

	mu      sync.Mutex // guards the following fields
	sent    []protocol.ServerMessage
	noted   []audit.Record
	blocked int
}

func newAside(t *testing.T) *aside {
	a := &aside{fixture: newFixture(t, Options{})}
	r, err := registry.Load(registrytest.File(t, entries()[0]), registry.Options{Handlers: map[string]registry.Handler{
		"look": registry.Bind(func(ctx context.Context, c registry.Call[args, asideNeeds]) (registry.Result, error) {
			return registry.Result{}, a.do(ctx, c)
		}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	a.tools = r.Snapshot()
	return a
}

// talk begins a conversation with the test's client and audit.
func (a *aside) talk() *Runner {
	c := a.fixture.talk("s1", "ada")
	c.c.Tell = func(m protocol.ServerMessage) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.sent = append(a.sent, m)
	}
	c.c.Audit = func(r audit.Record) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.noted = append(a.noted, r)
	}
	c.c.Blocked = func(time.Time) { a.blocked++ }
	c.c.Describe = func(s *registry.Session) { s.Phase, s.Suppressed.Audio = "active", true }
	return c
}

// shows returns the messages to the client.
func (a *aside) shows() (all []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.sent {
		switch m := m.(type) {
		case *protocol.ToolMessage:
			all = append(all, fmt.Sprintf("%d %s %s %s %s %s", m.Turn, m.CallID, m.Tool, m.Category, m.Name, m.Data))
		case *protocol.ToolProgress:
			fraction := "-"
			if m.Fraction != nil {
				fraction = fmt.Sprint(*m.Fraction)
			}
			all = append(all, fmt.Sprintf("%s %dms %q %s", m.CallID, m.DurationMS, m.Text, fraction))
		case *protocol.Timeout:
			all = append(all, m.Message)
		}
	}
	return all
}

// TestBesidesTheAnswer: a call sends messages to its client, notes to the audit, and reads the state of the session;
// it can see that a capability is missing.
func TestBesidesTheAnswer(t *testing.T) {
	a := newAside(t)
	a.do = func(_ context.Context, c registry.Call[args, asideNeeds]) error {
		if _, has := c.Needs.Gallery.Get(); has {
			t.Error("there is a gallery by voice")
		}
		if s := c.Session; s.Phase != "active" || !s.Suppressed.Audio || s.Suppressed.Transcript || s.ToolsVersion != a.tools.Version() {
			t.Errorf("%+v", s)
		}
		c.Needs.Messenger.Timeout(time.Now(), time.Minute, "Enough.")
		return errors.Join(
			c.Needs.Messenger.Send("order.packed", map[string]int{"n": 2}),
			c.Needs.Audit.Note("picked", []string{"a"}),
		)
	}
	if env := a.run(a.talk(), a.job("c1", "look", `{}`)); !env.OK {
		t.Fatalf("%s", env.Encode())
	}
	if got := a.shows(); a.blocked != 1 || !slices.Equal(got, []string{"Enough.", `1 c1 look utility order.packed {"n":2}`}) {
		t.Errorf("%q, blocked %d times", got, a.blocked)
	}
	n := a.noted[0]
	if len(a.noted) != 1 || n.Event != audit.EventNote || n.Note != "picked" || string(n.NoteData) != `["a"]` || n.CallID != "c1" || n.ToolID != "look" ||
		n.TurnID != 1 || n.Mode != spec.ModeVoice || n.IdempotencyKey != "provider:c1" || n.RegistryVersion != a.tools.Version() {
		t.Errorf("%+v", a.noted)
	}
}

// TestBesidesIsBounded: an invalid or excess message is an error for the tool, and has no other effect.
func TestBesidesIsBounded(t *testing.T) {
	a := newAside(t)
	a.do = func(_ context.Context, c registry.Call[args, asideNeeds]) error {
		for _, give := range []func(string, any) error{c.Needs.Messenger.Send, c.Needs.Audit.Note} {
			for _, name := range []string{"", "Order", "a b", "a.b.c.d", "1st", strings.Repeat("a", 41), "tool.\n"} {
				if err := give(name, nil); !errors.Is(err, registry.ErrNotTaken) {
					t.Errorf("%q: %v", name, err)
				}
			}
			for _, data := range []any{strings.Repeat("a", registry.MaxAside), func() {}, math.NaN()} {
				if err := give("big", data); !errors.Is(err, registry.ErrNotTaken) {
					t.Errorf("%T: %v", data, err)
				}
			}
			for i := range registry.MaxAsides + 1 {
				if err := give("ok", i); (err == nil) != (i < registry.MaxAsides) {
					t.Errorf("%d: %v", i, err)
				}
			}
		}
		return nil
	}
	a.run(a.talk(), a.job("c1", "look", `{}`))
	if len(a.sent) != registry.MaxAsides || len(a.noted) != registry.MaxAsides {
		t.Errorf("%d messages and %d notes", len(a.sent), len(a.noted))
	}
}

// TestProgress: the client gets the first progress at once, then the newest twice a second, and none after the call's
// end; progress with text is available to the model too.
func TestProgress(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ *fixture) {
		a := newAside(t)
		var kept registry.Progress
		a.do = func(_ context.Context, c registry.Call[args, asideNeeds]) error {
			kept = c.Needs.Progress
			for i := range 12 {
				kept.Tell(fmt.Sprintf("step\n%d\u202e", i), float64(i)/10)
				pass(140 * time.Millisecond)
			}
			kept.Tell(strings.Repeat("é", 300), math.NaN())
			pass(time.Second)
			kept.Tell("", -1)
			kept.Tell("never seen", 0)
			return nil
		}
		c := a.talk()
		var model []string
		c.c.Progress = func(p calls.Progressed) { model = append(model, fmt.Sprintf("%s %.4s %v", p.Call, p.Text, p.Fraction)) }
		a.run(c, a.job("c1", "look", `{}`))
		kept.Tell("late", 1)
		pass(time.Minute)
		if got := strings.Join(model, ", "); got != "c1 step 0, c1 step 0.3, c1 step 0.7, c1 step 1, c1 éééé -1" {
			t.Errorf("the model's progress is %q", got)
		}
		want := []string{
			`c1 0ms "step 0" 0`, `c1 420ms "step 3" 0.3`, `c1 980ms "step 7" 0.7`, `c1 1400ms "step 10" 1`,
			fmt.Sprintf(`c1 1680ms %q -`, strings.Repeat("é", 199)+"…"), `c1 2680ms "" -`,
		}
		if got := a.shows(); !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// TestNothingComesAfterACall: output of an abandoned handler is dropped.
func TestNothingComesAfterACall(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ *fixture) {
		a := newAside(t)
		done := make(chan struct{})
		a.do = func(_ context.Context, c registry.Call[args, asideNeeds]) error {
			defer close(done)
			pass(2 * time.Minute) // its timeout is a minute
			c.Needs.Messenger.Timeout(time.Now(), time.Minute, "Enough.")
			return errors.Join(c.Needs.Messenger.Send("late", nil), c.Needs.Audit.Note("late", nil))
		}
		a.run(a.talk(), a.job("c1", "look", `{}`))
		<-done
		if len(a.sent)+len(a.noted)+a.blocked != 0 {
			t.Errorf("%v %v %d", a.sent, a.noted, a.blocked)
		}
	})
}
