package orchestrator

import (
	"cmp"
	"slices"
	"time"

	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/transport"
)

// askWatch is about questions to the user: a call that needs approval runs only with an approval of its own and
// exactly the arguments that were shown.
type askWatch struct {
	asking    map[string]calls.Ask        // by call: being recorded
	shown     []*watchedQuestion          // not approved yet, oldest first
	questions map[string]*watchedQuestion // by token
	byRef     map[string]*watchedQuestion
	spokenAt  time.Time // when the user last began to speak
}

// watchedQuestion is the state of a question.
type watchedQuestion struct {
	token, ref, tool, args string
	askedAt                time.Time
	shown, resolving       bool
	approved, ended, used  bool
}

func newAskWatch() askWatch {
	return askWatch{asking: map[string]calls.Ask{}, questions: map[string]*watchedQuestion{}, byRef: map[string]*watchedQuestion{}}
}

func (w *watcher) askInput(in Input) {
	if w.turns.muted {
		if _, speech := in.(UserSpeechStarted); speech {
			return
		}
	}
	switch in := bareInput(in).(type) {
	case UserText:
		w.asks.spokenAt = w.at
	case UserSpeechStarted:
		w.asks.spokenAt = in.At
	case UserActivity:
		if in.Active {
			w.asks.spokenAt = w.at
		}
	case calls.Recorded:
		if a, ok := w.asks.asking[in.Call]; ok && in.Token != "" {
			q := &watchedQuestion{token: in.Token, ref: in.Reference, tool: a.Prepared.Tool().ToolID, args: string(a.Prepared.Args()), askedAt: w.at}
			w.asks.questions[in.Token], w.asks.byRef[in.Reference] = q, q
		}
		delete(w.asks.asking, in.Call)
	case calls.Resolved:
		q := w.asks.questions[in.Token]
		if q == nil || q.ended {
			return
		}
		q.resolving = false
		q.approved = in.Outcome == calls.OutcomeApproved
		q.ended = in.Outcome != calls.OutcomeFailed
		if i := slices.Index(w.asks.shown, q); q.approved && i >= 0 {
			before := slices.DeleteFunc(w.asks.shown[:i+1:i+1], func(o *watchedQuestion) bool { return o.tool == q.tool })
			w.asks.shown = append(before, w.asks.shown[i+1:]...)
		}
	}
}

func (w *watcher) askAction(in Input, a Action) {
	switch a := bare(a).(type) {
	case calls.Ask:
		if !w.needsApproval(a.Prepared.Tool().ToolID) {
			w.fail("%s needs no confirmation, and the user is asked", a.Prepared.Tool().ToolID)
		}
		w.asks.asking[a.Call] = a
		w.oneQuestionEach()
	case calls.ToClient:
		w.askMessage(a.Message)
	case calls.Resolve:
		w.resolves(in, a)
	case calls.Run:
		w.approvedRun(a)
	}
}

func (w *watcher) askMessage(m protocol.ServerMessage) {
	switch a := m.(type) {
	case *protocol.ConfirmationRequest:
		q := w.asks.questions[a.Token]
		if q == nil || q.shown || q.tool != a.Tool || q.args != string(a.Args) {
			w.fail("the user is asked for %s %s, which differs from the record: %+v", a.Tool, a.Args, q)
		}
		q.shown = true
		w.asks.shown = append(w.asks.shown, q)
		if most := cmp.Or(w.policy.Tools.Questions.Total, 10); len(w.asks.shown) > most {
			w.fail("question %d without an approval; the limit is %d", len(w.asks.shown), most)
		}
	case *protocol.ConfirmationEnded:
		q := w.asks.questions[a.Token]
		if q == nil || !q.ended || (a.Outcome == string(calls.OutcomeApproved)) != q.approved {
			w.fail("a question ended as %s: %+v", a.Outcome, q)
		}
	}
}

func (w *watcher) needsApproval(tool string) bool {
	return tool == "pay" || slices.Contains(w.policy.Tools.Confirm, tool)
}

// oneQuestionEach: no two questions about the same side effect, and never too many.
func (w *watcher) oneQuestionEach() {
	about := map[string]bool{}
	see := func(tool, args string) {
		if about[tool+args] {
			w.fail("the user is asked twice about %s %s", tool, args)
		}
		about[tool+args] = true
	}
	for _, a := range w.asks.asking {
		see(a.Prepared.Tool().ToolID, string(a.Prepared.Args()))
	}
	for _, q := range w.asks.questions {
		if !q.ended {
			see(q.tool, q.args)
		}
	}
	if len(about) > maxConfirmations {
		w.fail("%d questions wait at once", len(about))
	}
}

// resolves: an answer comes from the client, from the clock, or from a user who has spoken since the question.
func (w *watcher) resolves(in Input, a calls.Resolve) {
	q := w.asks.questions[a.Token]
	if q == nil || q.ended || q.resolving {
		w.fail("an answer to a question that does not wait for one: %+v", q)
	}
	q.resolving = true
	switch by := bareInput(in).(type) {
	case ConfirmationAnswer:
		if a.By != calls.ByClient || by.Token != a.Token || by.Approved != a.Approved {
			w.fail("the client's %+v became %+v", by, a)
		}
	case Tick:
		if a.By != calls.ByClock || a.Approved {
			w.fail("the clock has answered %+v", a)
		}
	case FromModel:
		call, ok := by.Event.(transport.ToolCall)
		if !ok || !w.policy.SpokenConfirmation || call.Name != calls.ConfirmAction || a.By != calls.BySpoken {
			w.fail("invariant 9: %T has answered %+v", by.Event, a)
		}
		if a.Approved && !q.askedAt.Before(w.asks.spokenAt) {
			w.fail("invariant 9: the model has approved a call without the user's agreement: %+v", q)
		}
	default:
		w.fail("invariant 9: %T has answered %+v", in, a)
	}
}

// approvedRun: a call that needs approval has its own, for exactly these arguments.
func (w *watcher) approvedRun(a calls.Run) {
	tool := a.Prepared.Tool().ToolID
	if !w.needsApproval(tool) {
		if a.Reference != "" {
			w.fail("%s runs as approved, but needs no approval", tool)
		}
		return
	}
	q := w.asks.byRef[a.Reference]
	switch {
	case q == nil || !q.approved:
		w.fail("invariant 9: %s %s runs without an approval: %+v", tool, a.Prepared.Args(), q)
	case q.used:
		w.fail("invariant 9: one approval runs %s twice", tool)
	case q.tool != tool || q.args != string(a.Prepared.Args()):
		w.fail("invariant 9: %s %s runs, but %s %s was approved", tool, a.Prepared.Args(), q.tool, q.args)
	}
	q.used = true
}
