package chat

import (
	"context"
	"errors"
	"slices"
	"time"

	"voicegw/internal/conversation"
	"voicegw/prompts"
	"voicegw/store"
)

// openApprovals returns the approved actions of the conversation of whose outcome its model has
// not been told: a gateway was killed meanwhile, or their answer is still on its way.
func (t *turn) openApprovals(ctx context.Context) []store.Approval {
	if t.a.opts.Approvals == nil {
		return nil
	}
	all, err := t.a.opts.Approvals.OpenIn(ctx, t.conv.ID, time.Now())
	if err != nil {
		t.a.opts.Logger.Warn("it could not be read whether approved actions are open; the next turn tries again", "conversation_id", t.conv.ID, "error", err)
		return nil
	}
	return slices.DeleteFunc(all, func(a store.Approval) bool {
		return a.Told || !conversation.Owned(a.User, t.conv.ID, t.req.User) || t.confirms(a.Question())
	})
}

// approvalNotice returns what the model is told about an approval.
func (t *turn) approvalNotice(a store.Approval) string {
	if a.Result != nil {
		return prompts.ApprovedNotice(a.Tool, a.Reference, t.mark.JSON(a.Result))
	}
	return prompts.UnknownNotice(a.Tool, a.Reference, a.ApprovedAt, a.Begun)
}

// told records that the conversation has been told of approvals, even if the client has left.
func (t *turn) told(ctx context.Context, open []store.Approval) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	for _, a := range open {
		if err := t.a.opts.Approvals.Told(ctx, a); err != nil && !errors.Is(err, store.ErrChanged) {
			t.a.opts.Logger.Warn("an approved action is told once more in the next turn", "conversation_id", t.conv.ID, "reference", a.Reference, "error", err)
		}
	}
}
