package session

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"voicegw/protocol"

	"voicegw/orchestrator"
	"voicegw/transport"
)

// follower records openings, turns and events of sessions, one line for each.
type follower struct {
	start protocol.TraceParent // the trace parent of each session

	mu       sync.Mutex
	lines    []string
	openings []Opening
}

func (f *follower) note(line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = append(f.lines, line)
}

func (f *follower) follow(o Opening) Followed {
	f.note(strings.TrimSpace("opening " + o.Provider + " " + o.Refused))
	f.mu.Lock()
	f.openings = append(f.openings, o)
	f.mu.Unlock()
	return Followed{Start: f.start, Take: func(s Step) {
		switch {
		case s.At.IsZero() || (s.In == nil) != (s.Event != nil):
			f.note(fmt.Sprintf("an unknown step: %+v", s))
		case s.Event != nil:
			f.note(strings.TrimSpace(strings.TrimPrefix(fmt.Sprintf("%T ", s.Event), "session.") + about(s.Event)))
		}
		for _, a := range s.Actions {
			switch a.(type) {
			case orchestrator.TurnStarted, orchestrator.TurnEnded:
				f.note(fmt.Sprintf("%T", a))
			}
		}
	}}
}

func (f *follower) expect(t *testing.T, what string, want ...string) {
	t.Helper()
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(f.lines, want) {
		t.Errorf("%s: got\n  %s\nwant\n  %s", what, strings.Join(f.lines, "\n  "), strings.Join(want, "\n  "))
	}
	f.lines = nil
}

// TestFollow: a follower gets the opening of a session, each of its steps, and its end.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &follower{}
		st := newStage(t, hearing, func(opts *Options) { opts.Follow = f.follow })
		c, model := st.started()
		f.expect(t, "a session begins", "opening fake")
		c.say(`{"type":"input.text","text":"where is Ada"}`)
		synctest.Wait()
		answers(c, model, "r1", "a1", "In Vienna.")
		f.expect(t, "a turn", "orchestrator.TurnStarted", "orchestrator.TurnEnded")
		c.say(`{"type":"session.end"}`)
		f.expect(t, "the end", "Ended client_ended")
		o := f.openings[0]
		if o.SessionID == "" || o.Agent != "default" || o.Entry != EntryOpen || o.Came.IsZero() || o.Started.Before(o.Came) || o.Known.Before(o.Started) || o.Begun.Before(o.Known) {
			t.Errorf("the opening is %+v", o)
		}
	})
}

// TestFollowFaults: among the sessions that could not begin, a follower gets those that the client cannot fix.
func TestFollowFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &follower{}
		st := newStage(t, hearing, func(opts *Options) { opts.Follow = f.follow })
		st.connect(`{"type":"session.start","agent":"nobody","input_rate":16000,"output_rate":24000}`)
		f.expect(t, "the client asks for nonsense")
		st.fake.Refuse(1, scriptedError("dial", transport.KindAuth))
		st.connect(`{"type":"session.start","input_rate":16000,"output_rate":24000}`)
		f.expect(t, "the provider refuses", "opening fake provider_refused")
	})
}

// TestTraceOfATakeover: the node that continues a session knows the trace of its beginning.
func TestTraceOfATakeover(t *testing.T) {
	start, _ := protocol.ParseTraceParent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	synctest.Test(t, func(t *testing.T) {
		f := newShelf()
		first, second := &follower{start: start}, &follower{}
		r, model := beginsAt(t, f.stage(t, "a", remembering, func(o *Options) { o.Follow = first.follow }))
		r.conn.say(`{"type":"input.text","text":"where is Ada"}`)
		synctest.Wait()
		answers(r.conn, model, "r1", "a1", "In Vienna.")
		r.read(-1)
		f.kill("a")
		r.st = f.stage(t, "b", remembering, func(o *Options) { o.Follow = second.follow })
		r.comeBack(r.position())
		r.st.fake.Accept(t)
		synctest.Wait()
		if o := second.openings; len(o) != 1 || o[0].Before != start || o[0].Entry != EntryTakeover || o[0].SessionID != r.id {
			t.Errorf("the session opens after the takeover with %+v", o)
		}
		r.conn.Abort()
		synctest.Wait()
		second.note("comes back")
		r.comeBack(r.position())
		synctest.Wait()
		if !slices.Contains(second.lines, "Returned local") {
			t.Errorf("the follower got %q", second.lines)
		}
	})
}
