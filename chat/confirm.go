package chat

import (
	"context"
	"errors"
	"time"

	"voicegw/internal/audit"
	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/execute"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/store"
)

// confirm records the user's answer to an approval request and runs an approved call. The error is the recording's.
func (t *turn) confirm(ctx context.Context) error {
	answer := t.req.Confirmation
	again := t.resumed
	if err := t.a.write(ctx, t.m.id, t.rec); err != nil {
		return errors.Join(ErrStore, err)
	}
	c, err := t.a.opts.Executor.Answer(ctx, t.session().ID, answer.Token, answer.Approved)
	if again && errors.Is(err, store.ErrUsed) && (c.Outcome == store.Approved) == answer.Approved {
		err = nil // answered by an earlier attempt, which may have stopped anywhere
	}
	switch {
	case errors.Is(err, store.ErrUnknown), errors.Is(err, store.ErrUsed), errors.Is(err, store.ErrExpired):
		t.rec.Refused = true
		if err := t.a.write(ctx, t.m.id, t.rec); err != nil {
			t.a.opts.Logger.Warn("recording an invalid confirmation failed", "conversation_id", t.conv.ID, "error", err)
		}
		return err
	case err != nil:
		return errors.Join(ErrStore, err)
	}
	t.started()
	outcome := calls.OutcomeDenied
	if answer.Approved {
		outcome = calls.OutcomeApproved
	}
	t.emit(&protocol.ConfirmationEnded{Token: answer.Token, Tool: c.Tool, Outcome: string(outcome)})
	if !answer.Approved {
		by, tools := t.askedBy(c)
		t.audit(calls.Decision(audit.Call{At: time.Now(), Tools: tools, Agent: by.Name, AgentVersion: by.Version,
			Mode: spec.ModeText, Turn: t.number, Tool: c.Tool, Args: c.Args}, outcome, calls.ByClient, c.Reference))
		t.noted(prompts.DeclinedNotice(c.Tool, c.Reference))
		return nil
	}
	env := t.runApproved(ctx, c)
	t.noted(prompts.ApprovedNotice(c.Tool, c.Reference, t.mark.JSON(env.Encode())))
	return nil
}

// askedBy returns the persona and tools that made an approval request, or the current ones if the persona is gone.
func (t *turn) askedBy(c store.Confirmation) (*Persona, *registry.Snapshot) {
	version := map[string]string{c.Tool: c.ToolVersion}
	if p := t.a.named(c.Agent); c.Agent != "" && p != nil && p.Name != t.persona.Name {
		return p, t.toolsOf(p, version)
	}
	if t.tools != nil {
		if tool, has := t.tools.Tool(c.Tool); has && tool.Version != c.ToolVersion {
			return t.persona, t.toolsOf(t.persona, version)
		}
	}
	return t.persona, t.tools
}

func (t *turn) runApproved(ctx context.Context, c store.Confirmation) registry.Envelope {
	t.rec.Wrote = true
	by, tools := t.askedBy(c)
	t.do(t.calls.Approve(time.Now(), t.number, calls.Approved{
		Tool: c.Tool, Reference: c.Reference, By: calls.ByClient, Agent: by.named(), Tools: tools,
		Keys: calls.ApprovedKeys(c.Reference, c.BusinessKey), Args: c.Args,
	}))
	id := t.callName(t.calls.Count())
	env := registry.NotFound(c.Tool, "", 0)
	if tools != nil {
		conversation := t.conversation()
		conversation.Session.Agent = by.Name
		env, _ = t.a.opts.Executor.RunStored(ctx, id, tools, c, conversation)
	}
	t.take(calls.Finished{Call: id, Envelope: env})
	t.settle = append(t.settle, func() { t.a.opts.Executor.Settle(c.Conversation, c.Session, c.Reference) })
	return t.answers[id]
}

func (t *turn) conversation() execute.Conversation {
	return execute.Conversation{
		Session:      t.session(),
		Capabilities: []any{registry.Inviter(client{t}), registry.Gallery(client{t})},
		Ephemeral:    t.req.History != nil,
		Trace:        t.follower.Span,
		Tell:         t.emit,
		Audit:        t.audit,
		Report:       func(in calls.Input) { t.results <- in },
	}
}

// client gives tools access to this turn's client. It is safe for concurrent use.
type client struct{ t *turn }

// Show sends an image to the client.
func (c client) Show(image registry.Image) {
	c.t.emit(&protocol.UIImage{
		ID: image.ID, URL: image.URL, Prompt: image.Prompt, Width: image.Width, Height: image.Height,
		ExpiresAt: protocol.Time{Time: image.ExpiresAt},
	})
}

// Origin returns the origin of the page that sent the message.
func (c client) Origin() string { return c.t.req.Origin }

func (c client) Guarantor() registry.Guarantor {
	return registry.Guarantor{ID: c.t.req.Key, Mark: c.t.req.KeyMark, Expires: c.t.req.KeyExpires}
}

// Said returns the user's and the assistant's messages of a conversation that only the client keeps.
func (c client) Said() (said []registry.Utterance) {
	req := c.t.req
	for _, m := range req.History {
		if m.Role == RoleUser || m.Role == RoleAssistant {
			said = append(said, registry.Utterance{Assistant: m.Role == RoleAssistant, Text: inWords(m.Text, m.Parts)})
		}
	}
	if req.History != nil && req.says() {
		said = append(said, registry.Utterance{Text: inWords(req.Message, req.Parts)})
	}
	return said
}

// Invite offers the client a voice session that continues the conversation.
func (c client) Invite(offer registry.VoiceOffer) {
	c.t.emit(&protocol.VoiceSessionStart{
		SessionID: offer.SessionID, PendingRequest: offer.PendingRequest, Ticket: offer.Ticket,
		ExpiresAt: protocol.Time{Time: offer.ExpiresAt},
	})
}
