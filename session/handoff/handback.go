package handoff

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"voicegw/internal/conversation"
	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/store"
)

// Said is what was said in a voice session that has gone on with a conversation.
type Part struct {
	SessionID, ConversationID, Agent string
	User                             user.User
	// Epoch is the session's epoch in the store's directory; 0 if it is not there.
	Epoch uint64
	// Until is when the newest entry began that this session has ever had, if that is later than
	// those of Entries.
	Until time.Time
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
	handbackTime = 15 * time.Second
	handbackAway = 2 * time.Minute
	// lastWait is how long the client's last message waits for the handback, so that a client
	// that has read it finds the conversation complete.
	lastWait = time.Second
)

// Return hands a conversation back on a goroutine of its own, once Keep has ended; over is closed
// when that is done. It may take 15 s, or 2 min if the lease was lost. Return itself waits for it for
// at most 1 s, and not at all if the client is gone. last is the handback in the client's last
// message; nil for a nil Keeper. A failure is logged.
func (k *Saver) HandBack(said Part, end Ending) (last *protocol.Handback, over <-chan struct{}) {
	done := make(chan struct{}) // closed when the handback is over
	if k == nil {
		close(done)
		return nil, done
	}
	last = &protocol.Handback{ConversationID: said.ConversationID, Summary: conversation.Summary(said.Entries, end.Lasted)}
	if !k.finish() && len(said.Entries) == 0 {
		close(done)
		return last, done
	}
	most := handbackTime
	if end.Lost {
		most = handbackAway
	}
	go func() {
		defer close(done)
		// The session's own context has ended.
		ctx, cancel := context.WithTimeout(context.Background(), most)
		defer cancel()
		k.wait(ctx)
		if err := k.store.HandBack(ctx, said); err != nil {
			k.logger.Error("the conversation could not be handed back", "conversation_id", said.ConversationID, "error", err)
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

// HandBack writes what was said in a voice session into its conversation, in the place of what
// Keep has written. While the store is away it tries again until ctx ends. The error wraps ErrTaken
// or one of the store's: store.ErrFenced if another node goes on with the session.
func (d *Handoffs) HandBack(ctx context.Context, said Part) error {
	return untilStored(ctx, func() error { return d.handBack(ctx, said) })
}

// Keep is HandBack for a session that goes on: what was said until now is not lost if this process
// is killed. It does not wait for a turn of text that is being answered, because that turn is kept
// beside it.
func (d *Handoffs) Save(ctx context.Context, said Part) error {
	return untilStored(ctx, func() error { return d.write(ctx, said) })
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

func (d *Handoffs) handBack(ctx context.Context, said Part) error {
	release, err := d.lease(ctx, said.ConversationID)
	if err != nil {
		return err
	}
	defer release()
	return d.write(ctx, said)
}

// write puts what was said into the conversation. A node that takes the session over moves the
// conversation's revision on, after it has become the session's owner: so whoever asks between its
// reading and its writing whether it is the owner still, writes nothing beside the new one.
func (d *Handoffs) write(ctx context.Context, said Part) error {
	newest := said.Until
	for _, e := range said.Entries {
		if e.At.After(newest) {
			newest = e.At
		}
	}
	return d.talks.Update(ctx, said.ConversationID, func(c *conversation.Conversation) error {
		if err := owned(c, said.User); err != nil {
			return err
		}
		if err := d.voice.Fenced(ctx, said.SessionID, said.Epoch, said.User.String(), said.ConversationID); err != nil {
			return err
		}
		if said.SessionID != "" && slices.ContainsFunc(c.Entries, func(e conversation.Entry) bool { return e.SessionID == said.SessionID && e.At.After(newest) }) {
			return store.ErrFenced // another node has gone on with the session, and has ended it
		}
		c.User, c.Agent = said.User.String(), cmp.Or(c.Agent, said.Agent)
		c.Retell(time.Now(), said.SessionID, said.Entries...)
		return nil
	})
}

// lease waits for the lease of a conversation for a while. If a turn of text takes longer it goes
// on without the lease, because what was said by voice must not be lost.
func (d *Handoffs) lease(ctx context.Context, id string) (release func(), err error) {
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
