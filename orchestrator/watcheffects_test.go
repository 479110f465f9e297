package orchestrator

import (
	"encoding/json"
	"strings"
	"time"

	"voicegw/orchestrator/calls"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/transport"
)

// effectWatch is about repeated side effects: a call that runs, or has succeeded, does not begin again under the same
// name.
type effectWatch struct {
	running map[string]string // by name of the side effect: the running call
	done    map[string]string
}

func newEffectWatch() effectWatch {
	return effectWatch{running: map[string]string{}, done: map[string]string{}}
}

// namesOf lists the names that block a call while another one with it runs, and those that block it after a success.
func namesOf(a calls.Run) (during, again []string) {
	tool := a.Prepared.Tool()
	key := "key " + a.Keys.Idempotency
	during, again = []string{key}, []string{key}
	if a.Keys.Business != "" {
		effect := "effect " + tool.ToolID + " " + a.Keys.Business
		during, again = append(during, effect), append(again, effect)
	}
	args := "args " + tool.ToolID + " " + string(a.Prepared.Args())
	if tool.SideEffects == spec.SideEffectsWrites {
		return append(during, args), again
	}
	turn, _ := json.Marshal(a.Turn)
	return append(during, args+" in turn "+string(turn)), again
}

func (w *watcher) effectAction(a Action) {
	run, ok := bare(a).(calls.Run)
	if !ok {
		return
	}
	during, again := namesOf(run)
	if c := w.tools.calls[run.Call]; c.named() && !c.unsure {
		again = append(again, c.name())
	}
	for _, name := range again {
		if first, ok := w.effects.done[name]; ok {
			w.fail("invariant 3: %s (%s) was done by %s and is done again by %s", name, run.Prepared.Tool().ToolID, first, run.Call)
		}
	}
	for _, name := range during {
		if first, ok := w.effects.running[name]; ok {
			w.fail("invariant 3: %s runs as %s and is begun again as %s", name, first, run.Call)
		}
		w.effects.running[name] = run.Call
	}
}

// effectDone removes a finished call.
func (w *watcher) effectDone(c *watchedCall, env registry.Envelope) {
	during, again := namesOf(*c.run)
	for _, name := range during {
		delete(w.effects.running, name)
	}
	if !env.OK {
		return
	}
	for _, name := range again {
		w.effects.done[name] = c.id
	}
}

// budgetWatch is about the budget of a user's turn.
type budgetWatch struct {
	limit            calls.Budget
	retrieval, total int  // begun since the budget was reset
	acted            bool // the user has spoken since their last turn began
	decided, said    bool // this step is the answer to a question, or the user's own text
}

func newBudgetWatch(p Policy) budgetWatch {
	return budgetWatch{limit: p.Tools.Budget.Or(calls.DefaultBudget(spec.ModeVoice))}
}

func (w *watcher) budgetInput(in Input) {
	_, w.budget.decided = bareInput(in).(calls.Resolved)
	w.budget.said = false
	switch in := bareInput(in).(type) {
	case UserText, Began:
		w.budget.acted, w.budget.said = true, true
	case UserSpeechStarted, UserSpeechStopped, UserActivity, UserInterrupt:
		w.budget.acted = true
	case FromModel:
		switch ev := in.Event.(type) {
		case transport.InputCommitted:
			w.budget.acted = true
		case transport.Transcript:
			w.budget.acted = w.budget.acted || ev.Role == transport.RoleUser
		}
	}
}

// budgetAction checks an action; rest are the later ones of the step.
func (w *watcher) budgetAction(a Action, rest []Action) {
	b := &w.budget
	switch a := bare(a).(type) {
	case TurnStarted:
		if b.decided || opensWithText(rest) && !b.said || opensWithSentence(rest) {
			return // the turn of a decision or a notice shares the previous budget
		}
		if b.acted {
			b.retrieval, b.total = 0, 0
		}
		b.acted = false
	case calls.Run:
		if a.Reference == "" { // an approved call is never refused
			w.spend(a.Prepared)
		}
	case calls.Ask:
		w.spend(a.Prepared)
	}
}

// opensWithText reports whether a turn begins with text that no words of the user have caused: the gateway's own
// words except a request to answer, or a tool's message, which the client sees. A new connection gets the user's
// request again without a mark, and the client does not see it again.
func opensWithText(rest []Action) bool {
	shown := false
	for _, a := range rest {
		switch a := a.(type) {
		case TurnStarted:
			return false // the text belongs to the next turn: the last words of a budget
		case Transcript:
			shown = true
		case Command:
			if text, ok := a.Command.(transport.UserText); ok {
				own := strings.HasPrefix(text.Text, "[voicegw:") && !strings.HasSuffix(text.Text, prompts.NudgeNotice)
				return shown || own
			}
		}
	}
	return false
}

func (w *watcher) spend(p *registry.Prepared) {
	b := &w.budget
	b.total++
	tool := p.Tool()
	if tool.Category == spec.CategoryRetrieval {
		b.retrieval++
	}
	if b.total > b.limit.Total || b.retrieval > b.limit.Retrieval {
		w.fail("beyond the budget: %s was let through as number %d, retrieval %d", tool.ToolID, b.total, b.retrieval)
	}
	var args struct {
		TopK  int `json:"top_k"`
		Limit int `json:"limit"`
	}
	if err := json.Unmarshal(p.Args(), &args); err != nil {
		w.fail("arguments that cannot be read: %s", p.Args())
	}
	if args.TopK > b.limit.TopK || args.Limit > 50 {
		w.fail("%s was let through with %s", tool.ToolID, p.Args())
	}
}

// wakes checks the state's own clock: a Tick does everything that is due.
func (w *watcher) wakes(due, next time.Time) {
	if !next.IsZero() && !next.After(due) {
		w.fail("a tick at %s left itself due", due.Sub(epoch))
	}
}
