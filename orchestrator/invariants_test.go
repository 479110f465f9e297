package orchestrator

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"voicegw/registry"
	"voicegw/transport"
)

// TestStepIsPure: the same arguments give the same results, and the state given
// is left as it was (invariant 7).
func TestStepIsPure(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		s, at := NewState(capsHearing, Policy{}, toolbox(), epoch), epoch
		for range 60 {
			at = at.Add(time.Duration(rng.IntN(900)) * time.Millisecond)
			in := randomInput(rng)
			before := dump(s)
			one, actionsOne := Step(s, at, in)
			two, actionsTwo := Step(s, at, in)
			if dump(s) != before {
				t.Fatalf("%T changed the state it was given", in)
			}
			if dump(one)+showAll(actionsOne) != dump(two)+showAll(actionsTwo) {
				t.Fatalf("%T had two outcomes", in)
			}
			s = one
		}
	}
}

// FuzzConversation holds random conversations and checks what must hold in each.
func FuzzConversation(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, seed%2 == 0, uint16(150))
	}
	f.Fuzz(func(t *testing.T, seed uint64, hearing bool, n uint16) {
		caps := capsDeaf
		if hearing {
			caps = capsHearing
		}
		rng := rand.New(rand.NewPCG(seed, 3))
		w := newWatcher(t)
		var running []string // tool calls
		s, at := NewState(caps, Policy{}, toolbox(), epoch), epoch
		take := func(in Input) {
			var actions []Action
			s, actions = Step(s, at, in)
			w.see(in, actions)
			for _, a := range actions {
				if run, ok := a.(RunTool); ok {
					running = append(running, run.Call)
				}
			}
		}
		for range n % 400 {
			at = at.Add(time.Duration(rng.IntN(400)) * time.Millisecond)
			if len(running) > 0 && rng.IntN(4) == 0 {
				i := rng.IntN(len(running))
				take(randomResult(rng, running[i]))
				if rng.IntN(8) > 0 { // now and then one is reported twice
					running = append(running[:i], running[i+1:]...)
				}
				continue
			}
			take(randomInput(rng))
		}
		for _, call := range running {
			take(ToolFinished{Call: call, Envelope: registry.Envelope{OK: true}})
		}
		// Whatever happened, time alone ends what is open.
		for range 100 {
			due := s.WakeAt()
			if due.IsZero() {
				break
			}
			if due.After(at) {
				at = due
			}
			take(Tick{})
		}
		take(HungUp{})
		w.over()
	})
}

// watcher checks the invariants that actions alone can show.
type watcher struct {
	t        *testing.T
	open     int // the open turn
	last     int
	flushed  map[string]bool
	calls    map[string]int // results still owed for a call
	spoke    map[int]bool   // turns with audio
	failed   map[int]bool   // turns with an error
	toolOpen map[string]bool
}

func newWatcher(t *testing.T) *watcher {
	return &watcher{t: t, flushed: map[string]bool{}, calls: map[string]int{}, spoke: map[int]bool{},
		failed: map[int]bool{}, toolOpen: map[string]bool{}}
}

func (w *watcher) see(in Input, actions []Action) {
	w.t.Helper()
	if m, ok := in.(FromModel); ok {
		switch ev := m.Event.(type) {
		case transport.ToolCall:
			w.calls[ev.Call]++
		case transport.ToolCancelled:
			for _, call := range ev.Calls {
				if w.calls[call] > 0 {
					w.calls[call] = 0
				}
			}
		}
	}
	for _, a := range actions {
		w.action(a)
	}
}

func (w *watcher) action(a Action) {
	w.t.Helper()
	switch a := a.(type) {
	case TurnStarted:
		if w.open != 0 || a.Turn != w.last+1 {
			w.t.Fatalf("turn %d began while %d was open and %d the last", a.Turn, w.open, w.last)
		}
		w.open, w.last = a.Turn, a.Turn
	case TurnEnded:
		if a.Turn != w.open {
			w.t.Fatalf("turn %d ended while %d was open", a.Turn, w.open)
		}
		if a.Status == TurnCompleted && !w.spoke[a.Turn] && !w.failed[a.Turn] {
			w.t.Fatalf("invariant 2: turn %d completed without speech or error", a.Turn)
		}
		w.open = 0
	case Failed:
		w.failed[a.Turn] = true
	case OpenItem:
		if w.flushed[a.Item] {
			w.t.Fatalf("invariant 4: item %s was opened after its flush", a.Item)
		}
		w.spoke[a.Turn] = true
	case EndItem:
		if w.flushed[a.Item] {
			w.t.Fatalf("item %s ended after its flush", a.Item)
		}
	case FlushItem:
		if w.flushed[a.Item] {
			w.t.Fatalf("item %s was flushed twice", a.Item)
		}
		w.flushed[a.Item] = true
	case Command:
		w.command(a.Command)
	case ToolStarted:
		w.toolOpen[a.Call] = true
	case ToolEnded:
		if !w.toolOpen[a.Call] {
			w.t.Fatalf("tool call %s ended without a start", a.Call)
		}
		delete(w.toolOpen, a.Call)
	}
}

func (w *watcher) command(cmd transport.Command) {
	w.t.Helper()
	switch cmd := cmd.(type) {
	case transport.ToolResult:
		w.calls[cmd.Call]--
		if w.calls[cmd.Call] < 0 {
			w.t.Fatalf("invariant 1: call %s was answered more than once", cmd.Call)
		}
	case transport.Truncate:
		if !w.flushed[cmd.Item] {
			w.t.Fatalf("item %s was truncated without a flush", cmd.Item)
		}
		if cmd.AudioMS < 0 {
			w.t.Fatalf("item %s was truncated at %d ms", cmd.Item, cmd.AudioMS)
		}
	}
}

func (w *watcher) over() {
	w.t.Helper()
	if w.open != 0 {
		w.t.Errorf("turn %d never ended", w.open)
	}
	for call, owed := range w.calls {
		if owed != 0 {
			w.t.Errorf("invariant 1: call %s has no terminal", call)
		}
	}
	if len(w.toolOpen) != 0 {
		w.t.Errorf("tool calls without an end: %v", w.toolOpen)
	}
}

func randomResult(rng *rand.Rand, call string) Input {
	env := registry.Envelope{OK: rng.IntN(4) > 0}
	switch rng.IntN(12) {
	case 0:
		env.Intents = []registry.Intent{registry.SetPendingMessage("more")}
	case 1:
		env.Intents = []registry.Intent{registry.SuppressTranscript(true)}
	}
	return ToolFinished{Call: call, Envelope: env}
}

// serial names what must be unique in a conversation.
var serial int

func randomInput(rng *rand.Rand) Input {
	item := func() string { return fmt.Sprintf("item%d", rng.IntN(6)) }
	resp := func() string { return fmt.Sprintf("resp%d", rng.IntN(4)) }
	statuses := []transport.ResponseStatus{transport.ResponseCompleted, transport.ResponseInterrupted, transport.ResponseFailed, transport.ResponseIncomplete}
	at := epoch.Add(time.Duration(rng.IntN(60000)) * time.Millisecond)
	serial++
	switch rng.IntN(17) {
	case 0:
		return UserSpeechStarted{Item: item(), AudioMS: 100, At: at}
	case 1:
		return UserSpeechStopped{Item: item(), AudioMS: 900, EndAt: at, SpeechMS: int64(rng.IntN(2000))}
	case 2, 3:
		return AudioBegan{fmt.Sprintf("audio%d", serial)}
	case 4:
		return AudioEnded{Item: fmt.Sprintf("audio%d", serial-rng.IntN(20)), AudioMS: int64(rng.IntN(3000))}
	case 5:
		return AudioSent{fmt.Sprintf("audio%d", serial-rng.IntN(20))}
	case 6:
		return UserText{Text: "hi"}
	case 7:
		return UserInterrupt{}
	case 8:
		return UserActivity{Active: rng.IntN(2) == 0}
	case 9:
		return Played{Item: fmt.Sprintf("audio%d", serial-rng.IntN(20)), MS: int64(rng.IntN(3000)), Done: rng.IntN(2) == 0}
	case 10:
		return FromModel{transport.ResponseStarted{ID: resp()}}
	case 11:
		return FromModel{transport.ResponseDone{ID: resp(), Status: statuses[rng.IntN(len(statuses))]}}
	case 12:
		return FromModel{transport.ToolCall{Call: fmt.Sprintf("call%d", serial), ID: item(), Name: "tool"}}
	case 13:
		if rng.IntN(2) == 0 {
			return FromModel{transport.ToolCancelled{Calls: []string{fmt.Sprintf("call%d", serial-rng.IntN(20))}}}
		}
		return FromModel{transport.Interrupted{}}
	case 14:
		return FromModel{transport.InputCommitted{Item: item()}}
	case 15:
		return FromModel{transport.Transcript{Item: item(), Role: transport.RoleUser, Text: "x"}}
	default:
		return Tick{}
	}
}

// TestStateIsBounded: nothing grows with the length of a call.
func TestStateIsBounded(t *testing.T) {
	s, at := NewState(capsHearing, Policy{}, toolbox(), epoch), epoch
	for i := range 2000 {
		at = at.Add(time.Second)
		for _, in := range []Input{
			UserSpeechStarted{Item: fmt.Sprint("u", i), At: at},
			FromModel{transport.InputCommitted{Item: fmt.Sprint("u", i)}},
			FromModel{transport.ResponseStarted{ID: fmt.Sprint("r", i)}},
			FromModel{transport.ToolCall{Call: fmt.Sprint("c", i), Name: "x"}},
			AudioBegan{fmt.Sprint("a", i)},
		} {
			s, _ = Step(s, at, in)
		}
	}
	if len(s.utterances) > maxUtterances || len(s.items) > maxItems || len(s.calls) > maxCalls || len(s.truncations) > maxItems {
		t.Errorf("the state has grown: %d utterances, %d items, %d calls, %d truncations", len(s.utterances), len(s.items), len(s.calls), len(s.truncations))
	}
}
