package handoff

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"voicegw/conversation"
	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/store"
)

// Said is what was said in a voice session that has gone on with a conversation.
type Said struct {
	SessionID, ConversationID, Agent string
	User                             user.User
	// Entries are in the order of time; their turns count from 1 in this session.
	Entries []conversation.Entry
}

// Ending is how a voice session has ended.
type Ending struct {
	// Lasted is how long the session was.
	Lasted time.Duration
	// Gone says that the client has left. Lost says that the session has lost its lease, which
	// means that the store is away.
	Gone, Lost bool
}

// The times of a handback.
const (
	// giveTime bounds a handback, and giveAway one that has to wait for a store that is away.
	giveTime = 15 * time.Second
	giveAway = 2 * time.Minute
	// lastWait is how long the client's last message waits for the handback, so that a client
	// that has read it finds the conversation complete.
	lastWait = time.Second
)

// Return calls desk.HandBack on a goroutine of its own; over is closed when that has ended. Its
// context ends after 15 s, or after 2 min if the lease was lost. Return itself waits for it for at
// most 1 s, and not at all if the client is gone. last is the handback in the client's last
// message; it is nil, and desk may be, if said has no conversation. A failure is logged.
func (said Said) Return(end Ending, desk interface {
	HandBack(context.Context, Said) error
}, logger *slog.Logger) (last *protocol.Handback, over <-chan struct{}) {
	done := make(chan struct{}) // closed when the handback is over
	if said.ConversationID == "" {
		close(done)
		return nil, done
	}
	last = &protocol.Handback{ConversationID: said.ConversationID, Summary: conversation.Summary(said.Entries, end.Lasted)}
	if len(said.Entries) == 0 {
		close(done)
		return last, done
	}
	most := giveTime
	if end.Lost {
		most = giveAway
	}
	go func() {
		defer close(done)
		// The session's own context has ended.
		ctx, cancel := context.WithTimeout(context.Background(), most)
		defer cancel()
		if err := desk.HandBack(ctx, said); err != nil {
			logger.Error("the conversation could not be handed back", "conversation_id", said.ConversationID, "error", err)
		}
	}()
	if !end.Gone {
		select {
		case <-done:
		case <-time.After(lastWait):
		}
	}
	return last, done
}

// The lease that a handback waits for: a turn of text that is being answered would fail if the
// conversation changed meanwhile.
const (
	leaseLife  = 30 * time.Second
	leaseWait  = 10 * time.Second
	leasePause = 100 * time.Millisecond
)

// HandBack writes what was said in a voice session into its conversation, once. While the store
// is away it tries again until ctx ends. The error wraps ErrTaken or one of the store's.
func (d *Desk) HandBack(ctx context.Context, said Said) error {
	return untilStored(ctx, func() error { return d.handBack(ctx, said) })
}

// untilStored calls try until the store answers, or ctx ends. A try that was not acknowledged
// may have been stored.
func untilStored(ctx context.Context, try func() error) error {
	for {
		err := try()
		if !errors.Is(err, store.ErrUnavailable) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(leasePause):
		}
	}
}

func (d *Desk) handBack(ctx context.Context, said Said) error {
	release, err := d.lease(ctx, said.ConversationID)
	if err != nil {
		return err
	}
	defer release()
	return d.talks.Update(ctx, said.ConversationID, func(c *conversation.Conversation) error {
		if err := owned(c, said.User); err != nil {
			return err
		}
		if said.SessionID != "" && slices.ContainsFunc(c.Entries, func(e conversation.Entry) bool { return e.SessionID == said.SessionID }) {
			return nil // an earlier try wrote it, unacknowledged
		}
		c.User, c.Agent = said.User.String(), cmp.Or(c.Agent, said.Agent)
		c.Join(time.Now(), said.Entries...)
		return nil
	})
}

// lease waits for the lease of a conversation for a while. If a turn of text takes longer it goes
// on without the lease, because what was said by voice must not be lost.
func (d *Desk) lease(ctx context.Context, id string) (release func(), err error) {
	late := time.After(leaseWait)
	for {
		held, err := d.talks.Lease(ctx, id, leaseLife)
		switch {
		case err == nil:
			return held.Release, nil
		case !errors.Is(err, store.ErrBusy):
			return nil, err
		}
		select {
		case <-late:
			return func() {}, nil
		case <-ctx.Done():
			return nil, fmt.Errorf("handoff: waiting for the conversation: %w", ctx.Err())
		case <-time.After(leasePause):
		}
	}
}
