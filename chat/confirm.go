package chat

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/conversation"
	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/execute"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/store"
	"voicegw/transport/textmodel"
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
		t.audit(calls.Decision(time.Now(), audit.Record{Agent: by.Name, AgentVersion: by.Version, Mode: spec.ModeText,
			TurnID: t.number, ToolID: c.Tool, Args: c.Args}, tools, outcome, calls.ByClient, c.Reference))
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
		if m.Role == textmodel.RoleUser || m.Role == textmodel.RoleAssistant {
			said = append(said, registry.Utterance{Assistant: m.Role == textmodel.RoleAssistant, Text: textmodel.InWords(m.Text, m.Parts)})
		}
	}
	if req.History != nil && req.says() {
		said = append(said, registry.Utterance{Text: textmodel.InWords(req.Message, req.Parts)})
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

// owed returns the results to report in this turn. begin skips those in the conversation's notices.
func (t *turn) owed(ctx context.Context) []execute.Owed {
	all, err := execute.OwedApprovals(ctx, t.a.opts.Approvals, t.conv.ID, t.req.User, t.mark)
	t.warn(err, "listing approved actions failed; the next turn tries again")
	all = slices.DeleteFunc(all, func(o execute.Owed) bool { return t.req.confirms(o.Question) })
	if t.save == nil {
		return all
	}
	jobs, err := execute.OwedJobs(ctx, t.a.opts.Jobs, t.conv.ID, t.req.User, t.mark)
	t.warn(err, "listing finished jobs failed; the next turn tries again")
	return append(all, jobs...)
}

// told marks results as reported, even if the client has left.
func (t *turn) told(ctx context.Context, results []execute.Owed) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	for _, o := range results {
		t.warn(o.Told(ctx), "marking a result as reported failed; the next turn reports it again", "reference", o.Reference)
	}
}

func (t *turn) warn(err error, message string, fields ...any) {
	if err != nil {
		t.a.opts.Logger.Warn(message, append([]any{"conversation_id", t.conv.ID, "error", err}, fields...)...)
	}
}

// recall adds the open approval requests of earlier turns to the book, so that repeating a call doesn't ask again. The
// conversation has them without their secret tokens.
func (t *turn) recall(ctx context.Context) {
	for _, e := range t.conv.Entries {
		for _, c := range e.Calls {
			if env, _, ends := question(c); time.Now().Before(ends) &&
				t.a.opts.Executor.QuestionState(ctx, c.Question) == execute.QuestionOpen {
				t.calls.Recall(env, e.Turn)
			}
		}
	}
}

// tellUnapproved reports, once, the approval requests of earlier turns that expired or were declined over the API.
func (t *turn) tellUnapproved(ctx context.Context) {
	for _, e := range t.conv.Entries {
		if e.Side != conversation.SideText {
			continue // the voice session reports it to its own model
		}
		for _, c := range e.Calls {
			_, reference, ends := question(c)
			if reference == "" || t.conv.HasOutcome(reference) || t.req.confirms(c.Question) {
				continue
			}
			switch t.a.opts.Executor.QuestionState(ctx, c.Question) {
			case execute.QuestionDeclined:
				t.noted(prompts.DeclinedNotice(c.Tool, reference))
			case execute.QuestionExpired:
				t.noted(prompts.ExpiredNotice(c.Tool, reference))
			case execute.QuestionUnknown:
				if !time.Now().Before(ends) {
					t.noted(prompts.ExpiredNotice(c.Tool, reference))
				}
			}
		}
	}
}

func (r *Request) confirms(name string) bool {
	return r.Confirmation != nil && store.QuestionName(r.Confirmation.Token) == name
}

// question returns the answer to a call that made an approval request, with the request's reference and expiry;
// otherwise they are zero.
func question(c conversation.Call) (env registry.Envelope, reference string, ends time.Time) {
	if c.Question == "" || json.Unmarshal(c.Envelope, &env) != nil || env.Error == nil ||
		env.Error.ConfirmationRequest == nil || env.Meta.CacheHit {
		return env, "", ends
	}
	var details struct {
		Reference string `json:"reference"`
	}
	ends, err := time.Parse(time.RFC3339, env.Error.ConfirmationRequest.ExpiresAt)
	if err == nil {
		_ = json.Unmarshal(env.Error.Details, &details) // without details, there is no reference
	}
	return env, details.Reference, ends
}

// resume restores the book of earlier turns. An approval continues their budget, or a model could keep asking.
func (t *turn) resume() {
	if err := t.calls.Book().Resume(t.conv.Policy); err != nil {
		t.a.opts.Logger.Warn("restoring the approval requests of earlier turns failed", "conversation_id", t.conv.ID, "error", err)
	}
	if t.req.Confirmation == nil {
		t.calls.Book().BeginTurn()
	}
}

// askedBefore records in the book how the approval requests of earlier turns ended.
func (t *turn) askedBefore(ctx context.Context) {
	t.calls.Book().Unapproved(func(tool, name string) {
		switch t.a.opts.Executor.QuestionState(ctx, name) {
		case execute.QuestionApproved:
			t.calls.Book().Approved(tool, name)
		case execute.QuestionDeclined, execute.QuestionExpired:
			t.calls.Book().Resolved(name)
		case execute.QuestionUnknown:
			t.calls.Book().Forget(name)
		}
	})
}
