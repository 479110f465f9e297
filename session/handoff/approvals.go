package handoff

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"voicegw/internal/conversation"
	"voicegw/internal/user"
	"voicegw/prompts"
	"voicegw/store"
)

// undelivered returns the news for a conversation: approvals with unreported outcomes, left by a gateway that was
// killed, and finished jobs.
func (d *Handoffs) undelivered(ctx context.Context, id string, who user.User) (open []store.Approval, ended []store.Job, err error) {
	if open, err = d.approvals.OpenIn(ctx, id, time.Now()); err != nil {
		return nil, nil, err
	}
	open = slices.DeleteFunc(open, func(a store.Approval) bool { return a.Told || !conversation.Owned(a.User, id, who) })
	if d.jobs == nil {
		return open, nil, nil
	}
	ended, err = d.jobs.OwedTo(ctx, id)
	return open, slices.DeleteFunc(ended, func(j store.Job) bool { return !conversation.Owned(j.User, id, who) }), err
}

// deliverNotices writes a notice into a conversation, once, for each unreported approval and job. It returns the
// notices.
func (d *Handoffs) deliverNotices(ctx context.Context, id string, who user.User) (notices []string, err error) {
	open, ended, err := d.undelivered(ctx, id, who)
	if err != nil || len(open)+len(ended) == 0 {
		return nil, err
	}
	err = d.talks.Update(ctx, id, func(c *conversation.Conversation) error {
		if err := owned(c, who); err != nil {
			return err
		}
		c.User, c.Agent = who.String(), cmp.Or(c.Agent, d.agent)
		notices = nil
		note := func(text string) {
			notices = append(notices, text)
			c.Append(time.Now(), conversation.Entry{At: time.Now(), Side: conversation.SideVoice,
				Role: conversation.RoleNotice, Text: text, System: true})
		}
		for _, j := range ended {
			if !c.HasOutcome(j.ID) {
				note(prompts.JobNotice(j.Name, j.Tool, j.ID, j.Result))
			}
		}
		for _, a := range open {
			if c.HasOutcome(a.Reference) {
				continue
			}
			text := prompts.UnknownNotice(a.Tool, a.Reference, a.ApprovedAt, a.Begun)
			if a.Result != nil {
				text = prompts.ApprovedNotice(a.Tool, a.Reference, a.Result)
			}
			note(text)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, j := range ended {
		if _, err := d.jobs.Told(ctx, j.ID); err != nil {
			return nil, err
		}
	}
	for _, a := range open {
		if err := d.approvals.Told(ctx, a); err != nil && !errors.Is(err, store.ErrChanged) {
			return nil, err
		}
	}
	return notices, nil
}

// Decided writes the outcome of an API answer into the question's conversation, once. result is the envelope of an
// approved call, nil if the call was declined. It writes nothing if the conversation is not stored and its first turn
// is not running.
func (d *Handoffs) Decided(ctx context.Context, c store.Confirmation, result json.RawMessage) error {
	if c.Conversation == "" {
		return nil
	}
	who, err := user.Stored(c.User)
	if err != nil {
		return fmt.Errorf("a question to an invalid user: %w", err)
	}
	text := prompts.DeclinedNotice(c.Tool, c.Reference)
	if result != nil {
		text = prompts.ApprovedNotice(c.Tool, c.Reference, result)
	}
	side := conversation.SideText
	if strings.HasPrefix(c.Session, "voice-") {
		side = conversation.SideVoice
	}
	return untilStored(ctx, func() error {
		if kept, err := d.isStored(ctx, c.Conversation); err != nil || !kept {
			return err
		}
		return d.talks.Update(ctx, c.Conversation, func(talk *conversation.Conversation) error {
			if err := owned(talk, who); err != nil {
				return err
			}
			if talk.HasOutcome(c.Reference) {
				return nil // an unacknowledged earlier try wrote it
			}
			talk.User, talk.Agent = cmp.Or(talk.User, who.String()), cmp.Or(talk.Agent, c.Agent, d.agent)
			talk.Append(time.Now(), conversation.Entry{At: time.Now(), Side: side, Role: conversation.RoleNotice, Text: text,
				System: true, Turn: talk.Turns})
			return nil
		})
	})
}

// isStored reports whether a conversation is stored here, or will be because its first turn is running. Otherwise its
// client keeps it, or it has expired.
func (d *Handoffs) isStored(ctx context.Context, id string) (bool, error) {
	for range 2 {
		if _, _, err := d.talks.Load(ctx, id); !errors.Is(err, store.ErrUnknown) {
			return err == nil, err
		}
		held, err := d.talks.Lease(ctx, id, leaseLife)
		if errors.Is(err, store.ErrBusy) {
			return true, nil
		} else if err != nil {
			return false, err
		}
		held.Release() // no turn is running; one may have ended since Load
	}
	return false, nil
}
