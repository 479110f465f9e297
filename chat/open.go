package chat

import (
	"context"
	"errors"
	"time"

	"voicegw/conversation"
	"voicegw/orchestrator/policy"
	"voicegw/store"
)

// tellOpen tells the model, before anything else in this turn, of what was approved in the
// conversation and of which nobody knows what came: a gateway was killed in between. It
// returns what was told.
func (t *turn) tellOpen(ctx context.Context) []store.Approval {
	if t.a.opts.Approvals == nil {
		return nil
	}
	all, err := t.a.opts.Approvals.OpenIn(ctx, t.conv.ID, time.Now())
	if err != nil {
		t.a.opts.Logger.Warn("nobody knows whether approved actions are open; the next turn asks again", "conversation_id", t.conv.ID, "error", err)
		return nil
	}
	var open []store.Approval
	for _, a := range all {
		if a.Told || !conversation.Owned(a.User, t.conv.ID, t.req.User) {
			continue
		}
		t.noted(policy.UnknownNotice(a.Tool, a.Reference, a.ApprovedAt, a.Begun))
		open = append(open, a)
	}
	return open
}

// told notes that the conversation has what tellOpen said, whoever has gone by then.
func (t *turn) told(ctx context.Context, open []store.Approval) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	for _, a := range open {
		if err := t.a.opts.Approvals.Told(ctx, a); err != nil && !errors.Is(err, store.ErrChanged) {
			t.a.opts.Logger.Warn("an approved action is told once more in the next turn", "conversation_id", t.conv.ID, "reference", a.Reference, "error", err)
		}
	}
}
