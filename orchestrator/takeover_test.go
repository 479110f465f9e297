package orchestrator

import (
	"encoding/json"
	"time"
)

// takeOver continues in another process from the saved state. Its calls and questions are new to the watcher, which
// stops watching the earlier ones.
func (tk *talk) takeOver() {
	data, err := json.Marshal(tk.state.Memory())
	if err != nil {
		tk.watch.fail("the memory cannot be written: %v", err)
	}
	var m Memory
	if err := json.Unmarshal(data, &m); err != nil {
		tk.watch.fail("the memory cannot be read: %v", err)
	}
	m.Calls.Questions = nil
	for i := range m.Notices {
		m.Notices[i].Record = nil
	}
	given := tk.rng.IntN(2) == 0
	before := tk.watch
	tk.watch = newWatcher(before.t, before.caps, before.policy)
	w := &tk.watch.turns
	tk.watch.pages = contextWatch{sent: before.pages.sent, waiting: before.pages.waiting, down: true}
	w.phase, w.last, w.suppressed = before.turns.phase, m.Turn, before.turns.suppressed
	if m.Open != nil {
		w.open = m.Open.Number
		w.spoke[w.open] = m.Open.Spoke
	}
	if !given {
		tk.watch.leftOut = turnsLeftOut
	}
	tk.epoch++
	tk.calls, tk.running, tk.asking, tk.resolving, tk.tokens, tk.refs = nil, nil, nil, nil, nil, nil
	tk.preparing = nil
	for _, h := range m.Exacts {
		tk.watch.exacts.open++
		tk.watch.exacts.held = tk.watch.exacts.held || h.Notice
	}
	tk.response, tk.audio, tk.played, tk.sent, tk.clock = "", nil, nil, map[string]time.Duration{}, PlayClock{}
	tk.state = tk.fresh()
	again := tk.rng.IntN(2) == 0
	in := Restored{Memory: m, StartedAt: epoch, Epoch: tk.epoch, Given: given, SettledMS: int64(tk.rng.IntN(3000)), SaidAgain: again}
	next, actions := tk.oneStep(in)
	tk.state = next
	for _, a := range actions {
		switch a := a.(type) {
		case PrepareExact:
			tk.preparing = append(tk.preparing, a.ID)
		case TurnEnded:
			w.open = 0
		case TurnStarted: // a notice has waited for it
			w.open, w.last, tk.watch.leftOut = a.Turn, a.Turn, 0
		}
	}
}
