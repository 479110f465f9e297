package orchestrator

import (
	"slices"
	"time"

	"voicegw/internal/audit"
	"voicegw/orchestrator/calls"
)

// exactWatch is about exact sentences.
type exactWatch struct {
	open     int                       // requested, but without an end in the audit
	held     bool                      // the notice is not heard yet: the user is not listened to
	heard    bool                      // the step has audited a sentence that was heard
	sounding map[string]bool           // items that have begun and not ended
	results  map[string]calls.Finished // results that wait for sentences, by call
}

func (s State) exactCount() int {
	if s.sayings == nil {
		return 0
	}
	return len(s.sayings.all)
}

func (w *watcher) exactAction(a Action) {
	x := &w.exacts
	switch a := bare(a).(type) {
	case PrepareExact:
		x.open++
	case OpenItem:
		x.sounding[a.Item] = true
	case EndItem:
		delete(x.sounding, a.Item)
	case FlushItem:
		delete(x.sounding, a.Item)
	case PlayExact:
		if len(x.sounding) != 1 || !x.sounding[a.Item] {
			w.fail("a sentence is said in the middle of %v", x.sounding)
		}
	case HoldUser:
		if x.held = a.On; !a.On && !x.heard {
			w.fail("the session continues before its notice was heard")
		}
	case calls.Run:
		if x.held {
			w.fail("%s runs before the notice was heard", a.Call)
		}
	case Audit:
		if a.Record.Event != audit.EventExact || a.Record.Again {
			return
		}
		x.open--
		x.heard = a.Record.OK
		if r := a.Record; r.HeardMS < 0 || r.HeardMS > r.LengthMS || r.OK && r.Spoken == saidExactly && r.HeardMS+exactSlack < r.LengthMS {
			w.fail("a sentence of %d ms: %d ms heard, whole: %t", r.LengthMS, r.HeardMS, r.OK)
		}
	}
}

// sentences: the state's sentences agree with the actions.
func (w *watcher) sentences(s State) {
	if n := s.exactCount(); n != w.exacts.open {
		w.fail("%d sentences wait, and %d have no end in the audit", n, w.exacts.open)
	}
	if s.sayings.noticeOpen() != w.exacts.held && s.phase != PhaseEnded {
		w.fail("the notice is open: %t, and the user is held: %t", s.sayings.noticeOpen(), w.exacts.held)
	}
	if s.sayings != nil && (len(s.sayings.held) > maxHeld || len(s.sayings.results) > maxExacts) {
		w.fail("%d inputs and %d results wait", len(s.sayings.held), len(s.sayings.results))
	}
}

// prepareOne delivers the audio of a sentence, or a failure.
func (tk *talk) prepareOne() {
	if len(tk.preparing) == 0 || tk.page.IntN(3) > 0 {
		return
	}
	id := pick(tk.page, &tk.preparing, true)
	if tk.page.IntN(4) == 0 {
		tk.take(ExactFailed{ID: id})
		return
	}
	tk.take(ExactReady{ID: id, AudioMS: int64(500 + tk.page.IntN(3000))})
}

// resultHeld reports whether a result waits for a sentence.
func (w *watcher) resultHeld(in calls.Finished) bool {
	x := &w.exacts
	if _, twice := x.results[in.Call]; twice {
		return true
	}
	held := slices.ContainsFunc(w.actions, func(a Action) bool { _, ok := a.(PrepareExact); return ok })
	if held {
		x.results[in.Call] = in
	}
	return held
}

// resultsReleased takes the results that have waited long enough: their calls end in this step.
func (w *watcher) resultsReleased() {
	for _, a := range w.actions {
		if e, ok := a.(ToolEnded); ok {
			if in, held := w.exacts.results[e.Call]; held {
				delete(w.exacts.results, e.Call)
				w.toolFinished(in)
			}
		}
	}
}

// sendRest sends the waiting audio: a client that takes nothing is disconnected.
func (tk *talk) sendRest() {
	for _, it := range tk.state.line.items {
		if more := it.unsent(); more > 0 {
			tk.take(tk.sends(it.id, more))
		}
	}
}

// hearExacts lets the client hear all sentences.
func (tk *talk) hearExacts() {
	for range 4 * maxExacts * maxExactTries {
		if tk.state.sayings.first() == nil || tk.state.phase == PhaseEnded {
			return
		}
		for len(tk.preparing) > 0 {
			tk.take(ExactReady{ID: pick(tk.rng, &tk.preparing, false), AudioMS: 1500})
		}
		tk.sendRest()
		tk.pass(30 * time.Second)
		tk.finishAll()
	}
	tk.watch.fail("a sentence was not said in %d minutes: %+v", 2*maxExacts*maxExactTries, *tk.state.sayings.first())
}

// exactInput: text typed before the notice waits.
func (w *watcher) exactInput(in Input) {
	switch in.(type) {
	case UserText, UserAsk, UserImage, UserActivity, UserInterrupt:
		commands := slices.ContainsFunc(w.actions, func(a Action) bool { _, ok := a.(Command); return ok })
		if w.exacts.held && commands {
			w.fail("%T reached the model before the notice was heard", in)
		}
	}
}

// finishAll finishes all running calls.
func (tk *talk) finishAll() {
	for len(tk.running)+len(tk.asking)+len(tk.resolving) > 0 {
		switch {
		case len(tk.running) > 0:
			tk.finishOne(false)
		case len(tk.asking) > 0:
			tk.askOne()
		default:
			tk.resolveOne()
		}
	}
}

// opensWithSentence reports whether a turn is for an exact sentence alone, which shares the previous budget.
func opensWithSentence(rest []Action) bool {
	for _, a := range rest {
		switch a.(type) {
		case TurnStarted:
			return false
		case PlayExact:
			return true
		}
	}
	return false
}
