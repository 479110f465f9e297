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

// deedWatch is about what is done twice: nothing that runs, or has been done, is begun
// again under the same name.
type deedWatch struct {
	running map[string]string // by name of the deed: the call that does it
	done    map[string]string
}

func newDeedWatch() deedWatch {
	return deedWatch{running: map[string]string{}, done: map[string]string{}}
}

// namesOf lists the names under which a call must not run beside another one, and those
// under which it must not run again after it has succeeded.
func namesOf(a calls.Run) (beside, again []string) {
	tool := a.Prepared.Tool()
	key := "key " + a.Keys.Idempotency
	beside, again = []string{key}, []string{key}
	if a.Keys.Business != "" {
		deed := "deed " + tool.ToolID + " " + a.Keys.Business
		beside, again = append(beside, deed), append(again, deed)
	}
	args := "args " + tool.ToolID + " " + string(a.Prepared.Args())
	if tool.SideEffects == spec.SideEffectsWrites {
		return append(beside, args), again
	}
	turn, _ := json.Marshal(a.Turn)
	return append(beside, args+" in turn "+string(turn)), again
}

func (w *watcher) deedAction(a Action) {
	run, ok := bare(a).(calls.Run)
	if !ok {
		return
	}
	beside, again := namesOf(run)
	if c := w.tools.calls[run.Call]; c.named() && !c.unsure {
		again = append(again, c.name())
	}
	for _, name := range again {
		if first, ok := w.deeds.done[name]; ok {
			w.fail("invariant 3: %s (%s) was done by %s and is done again by %s", name, run.Prepared.Tool().ToolID, first, run.Call)
		}
	}
	for _, name := range beside {
		if first, ok := w.deeds.running[name]; ok {
			w.fail("invariant 3: %s runs as %s and is begun again as %s", name, first, run.Call)
		}
		w.deeds.running[name] = run.Call
	}
}

// deedDone takes a call from those that run.
func (w *watcher) deedDone(c *watchedCall, env registry.Envelope) {
	beside, again := namesOf(*c.run)
	for _, name := range beside {
		delete(w.deeds.running, name)
	}
	if !env.OK {
		return
	}
	for _, name := range again {
		w.deeds.done[name] = c.id
	}
}

// budgetWatch is about what a user's turn may use.
type budgetWatch struct {
	limit            calls.Budget
	retrieval, total int  // begun since the budget was new
	acted            bool // the user has said something since the last turn that they began
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

// budgetAction is shown an action and those of the same step that come after it.
func (w *watcher) budgetAction(a Action, rest []Action) {
	b := &w.budget
	switch a := bare(a).(type) {
	case TurnStarted:
		if b.decided || opensWithText(rest) && !b.said || opensWithSentence(rest) {
			return // a decision's turn, or a notice's, shares the budget of the one before
		}
		if b.acted {
			b.retrieval, b.total = 0, 0
		}
		b.acted = false
	case calls.Run:
		if a.Reference == "" { // what a person has approved is refused to nobody
			w.spend(a.Prepared)
		}
	case calls.Ask:
		w.spend(a.Prepared)
	}
}

// opensWithText says whether a turn begins with text that no words of the user have caused: the gateway's own words, but
// for a request to answer, or a tool's message, which the client is shown. A new connection that is told the user's
// request again gets it without a mark, and the client is not shown it again.
func opensWithText(rest []Action) bool {
	shown := false
	for _, a := range rest {
		switch a := a.(type) {
		case TurnStarted:
			return false // the text is the next turn's: the last words of a budget
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

// wakes holds a state to its own clock: what is due is done by a Tick.
func (w *watcher) wakes(due, next time.Time) {
	if !next.IsZero() && !next.After(due) {
		w.fail("a tick at %s left itself due", due.Sub(epoch))
	}
}
