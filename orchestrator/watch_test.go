package orchestrator

import (
	"slices"
	"strings"
	"testing"
	"time"

	"voicegw/orchestrator/calls"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/transport"
)

// watcher checks a conversation by its inputs and actions alone. It knows nothing of the State.
type watcher struct {
	t    *testing.T
	caps transport.Capabilities
	// policy with the defaults filled in, and the budget of voice.
	policy Policy

	at      time.Time
	actions []Action // of the current step
	ticked  bool     // the step was a tick: only time has passed
	leftOut int      // how many numbers the next turn may skip, because a process died
	turns   turnWatch
	tools   toolWatch
	effects effectWatch
	budget  budgetWatch
	asks    askWatch
	pages   contextWatch
	news    newsWatch
	exacts  exactWatch
}

// turnWatch is about turns, speech and the phases of a session.
type turnWatch struct {
	open, last int
	spoke      map[int]bool // turns with audio or words
	failed     map[int]bool // turns with an error
	flushed    map[string]bool
	opened     map[string]bool
	phase      Phase
	muted      bool
	suppressed bool // audio was off at some time
	speaking   bool
	away       bool
	ended      bool
	sent       map[string]int64 // ms of each item
}

func newWatcher(t *testing.T, caps transport.Capabilities, policy Policy) *watcher {
	policy = policy.withDefaults()
	return &watcher{
		t: t, caps: caps, policy: policy,
		turns:   turnWatch{spoke: map[int]bool{}, failed: map[int]bool{}, flushed: map[string]bool{}, opened: map[string]bool{}, sent: map[string]int64{}},
		tools:   newToolWatch(),
		effects: newEffectWatch(),
		budget:  newBudgetWatch(policy),
		asks:    newAskWatch(),
		news:    newNewsWatch(),
		exacts:  exactWatch{sounding: map[string]bool{}, results: map[string]calls.Finished{}},
	}
}

// see checks one step.
func (w *watcher) see(at time.Time, in Input, actions []Action, phase Phase) {
	w.at, w.actions = at, actions
	_, w.ticked = in.(Tick)
	if _, ok := in.(Tick); ok && slices.ContainsFunc(actions, func(a Action) bool { return a == Action(Command{transport.ActivityEnd{}}) }) {
		in = UserActivity{} // the button of a disconnected client counts as released
	}
	w.phases(phase)
	w.turnInput(in)
	w.toolInput(in)
	w.resultsReleased()
	w.exactInput(in)
	w.budgetInput(in)
	w.askInput(in)
	w.contextInput(in)
	w.newsInput(in)
	ended := w.turns.ended
	for i, a := range actions {
		if ended {
			w.afterEnd(a)
		}
		w.turnAction(a)
		w.toolAction(a)
		w.effectAction(a)
		w.budgetAction(a, actions[i+1:])
		w.askAction(in, a)
		w.contextAction(a, actions[i+1:])
		w.newsAction(a, actions[i+1:])
		w.exactAction(a)
	}
	if _, ok := in.(AudioBegan); ok && w.turns.suppressed && w.turns.open > 0 {
		w.turns.spoke[w.turns.open] = true // even without a listener
	}
}

func (w *watcher) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf(format, args...)
}

// phases checks that phases only advance.
func (w *watcher) phases(phase Phase) {
	order := []Phase{"", PhaseConnecting, PhaseActive, PhaseEnding, PhaseEnded}
	if slices.Index(order, phase) < slices.Index(order, w.turns.phase) {
		w.fail("the session went from %s back to %s", w.turns.phase, phase)
	}
	w.turns.phase = phase
}

// afterEnd: after the end, only begun calls are recorded and approved ones run.
func (w *watcher) afterEnd(a Action) {
	switch bare(a).(type) {
	case Audit, calls.Run:
	default:
		w.fail("after the end came %s", show(a))
	}
}

func (w *watcher) turnInput(in Input) {
	switch in := in.(type) {
	case AudioSent:
		w.turns.sent[in.Item] = in.Sent.Milliseconds()
	case ClientLost:
		w.turns.away = true
	case ClientBack:
		w.turns.away = false
	}
	if w.turns.muted {
		w.turns.speaking = false
		return
	}
	switch in := bareInput(in).(type) {
	case UserSpeechStarted:
		w.turns.speaking = true
	case UserSpeechStopped:
		w.turns.speaking = false
	case FromModel:
		if _, ok := in.Event.(transport.InputCommitted); ok {
			w.turns.speaking = false // the model has all of it
		}
	case UserActivity:
		w.turns.speaking = in.Active && !w.exacts.held
	}
}

func (w *watcher) turnAction(a Action) {
	t := &w.turns
	switch a := bare(a).(type) {
	case TurnStarted:
		if t.open != 0 || a.Turn != t.last+1+w.leftOut {
			w.fail("turn %d began while %d was open and %d the last", a.Turn, t.open, t.last)
		}
		t.open, t.last, w.leftOut = a.Turn, a.Turn, 0
	case TurnEnded:
		if a.Turn != t.open {
			w.fail("turn %d ended while %d was open", a.Turn, t.open)
		}
		if a.Status == TurnCompleted && !t.spoke[a.Turn] && !t.failed[a.Turn] {
			w.fail("invariant 2: turn %d completed without speech, words or error", a.Turn)
		}
		t.open = 0
		w.waited(a.Latency)
	case Transcript:
		if a.Role == transport.RoleAssistant && strings.TrimSpace(a.Text) != "" {
			t.spoke[a.Turn] = true
		}
	case Failed:
		t.failed[a.Turn] = true
	case OpenItem:
		if t.flushed[a.Item] || t.opened[a.Item] {
			w.fail("invariant 4: item %s was opened again", a.Item)
		}
		t.opened[a.Item], t.spoke[a.Turn] = true, true
	case EndItem:
		if t.flushed[a.Item] || !t.opened[a.Item] {
			w.fail("item %s ended after its flush, or was never opened", a.Item)
		}
	case FlushItem:
		w.flush(a)
	case SpeechStopped:
		t.speaking = false
	case MuteUser:
		t.muted, t.speaking = true, false
	case End:
		if t.ended {
			w.fail("the session ended twice")
		}
		t.ended = true
	case IntentDecided: // the audit may record this only when the model is informed
		t.suppressed = t.suppressed || a.Intent.Type == registry.IntentSuppressAudio && a.Why == ""
	case Command:
		if text, ok := a.Command.(transport.UserText); ok && t.away && w.ticked && strings.HasSuffix(text.Text, prompts.NudgeNotice) {
			w.fail("the model was asked again for an answer that no client can hear")
		}
		w.turnCommand(a.Command)
	}
}

// waited: the parts of a wait are consecutive and add up to it.
func (w *watcher) waited(l *Latency) {
	if l == nil {
		return
	}
	if l.Detection < 0 || l.Provider < 0 || l.Gateway < 0 || l.Total != l.Detection+l.Provider+l.Gateway {
		w.fail("the parts of a latency are not its whole: %+v", *l)
	}
}

func (w *watcher) flush(a FlushItem) {
	if w.turns.flushed[a.Item] {
		w.fail("item %s was flushed twice", a.Item)
	}
	if w.turns.muted && a.Reason != FlushConnectionLost && !slices.ContainsFunc(w.actions, func(a Action) bool { _, ends := a.(End); return ends }) {
		w.fail("item %s was flushed from the farewell", a.Item)
	}
	if a.HeardMS < 0 || a.HeardMS > a.SentMS || a.SentMS > w.turns.sent[a.Item] {
		w.fail("item %s: %d ms reported heard and %d sent; %d were sent", a.Item, a.HeardMS, a.SentMS, w.turns.sent[a.Item])
	}
	w.turns.flushed[a.Item] = true
}

func (w *watcher) turnCommand(cmd transport.Command) {
	switch cmd := cmd.(type) {
	case transport.Respond:
		if w.turns.speaking {
			w.fail("an answer was asked for while the user speaks")
		}
	case transport.Truncate:
		if !w.turns.flushed[cmd.Item] || cmd.AudioMS < 0 || cmd.AudioMS > w.turns.sent[cmd.Item] {
			w.fail("item %s was truncated at %d ms of %d; flushed: %t", cmd.Item, cmd.AudioMS, w.turns.sent[cmd.Item], w.turns.flushed[cmd.Item])
		}
	}
}

// over checks the state left by a finished conversation.
func (w *watcher) over() {
	if w.turns.open != 0 {
		w.t.Errorf("turn %d never ended", w.turns.open)
	}
	w.toolsOver()
	if n := w.exacts.open; n != 0 {
		w.t.Errorf("%d exact sentences have no end in the audit", n)
	}
	if n := len(w.pages.waiting); n > 0 {
		w.t.Errorf("%d texts of the page are lost", n)
	}
}

// bounded: no part of a state grows without limit.
func (w *watcher) bounded(s State) {
	if s.calls.Strayed() {
		w.fail("a call has made a transition that the table of states does not have")
	}
	for _, b := range []struct {
		what       string
		have, most int
	}{
		{"utterances", len(s.user.utterances), maxUtterances},
		{"items", len(s.line.items), maxItems},
		{"items that have begun", len(s.line.begun), maxBegun},
		{"cuts", len(s.cuts), 4 * maxItems},
		{"calls", s.calls.UnderWay(), maxCalls + maxConfirmations}, // an approved call is never refused
		{"questions", s.calls.Questions(), maxConfirmations},
		{"notices", len(s.notices), maxNotices},
		{"texts of the page", len(s.contexts), maxContexts},
		{"exact sentences", s.exactCount(), maxExacts + 1},
	} {
		if b.have > b.most {
			w.fail("%d %s; the limit is %d", b.have, b.what, b.most)
		}
	}
}
