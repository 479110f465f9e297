package chat

import (
	"context"
	"slices"
	"strconv"
	"time"

	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/execute"
	"voicegw/registry/spec"
	"voicegw/transport/textmodel"
)

// corrects reports claims in an answer that no call explains. It returns true if the model must correct itself, which
// it is asked once in a turn. An answer of an earlier attempt was reported then.
func (t *turn) corrects(answer string) bool {
	all := t.calls.Unmatched(t.number, answer, 0)
	for _, u := range all {
		if !t.replaying {
			t.audit(u.Record(time.Now(), spec.ModeText))
			t.emit(u.Message(t.item()))
		}
	}
	if len(all) == 0 || t.corrected {
		return false
	}
	t.corrected = true
	t.noted(calls.ClaimNotice(all, false))
	return true
}

func (t *turn) item() string { return "text_" + strconv.Itoa(t.number) + "_" + strconv.Itoa(t.items) }

// rememberEffects records the calls of earlier turns and of the client, which may explain a claim.
func (t *turn) rememberEffects(ctx context.Context) {
	if t.a.opts.Claims.None() {
		return
	}
	for _, e := range t.conv.Entries {
		for _, c := range e.Calls {
			if c.OK || c.Asked && t.mayHaveRun(ctx, c.Question) {
				t.calls.Done(e.Turn, c.Tool, c.Args)
			}
		}
	}
	turn := t.number
	for _, m := range slices.Backward(t.earlier) {
		if m.Role == textmodel.RoleUser || t.req.says() {
			turn = 0
		}
		for _, c := range m.Calls {
			t.calls.Done(turn, c.Name, c.Args)
		}
	}
}

// mayHaveRun reports whether the call of an approval request may have run. The state of an unnamed one is unknown.
func (t *turn) mayHaveRun(ctx context.Context, question string) bool {
	if question == "" {
		return true
	}
	state := t.a.opts.Executor.QuestionState(ctx, question)
	return state == execute.QuestionApproved || state == execute.QuestionUnknown
}
