package handoff

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"voicegw/internal/conversation"
	"voicegw/internal/user"
	"voicegw/protocol"
	"voicegw/store"
)

// Part is a voice session's part of a conversation.
type Part struct {
	SessionID, ConversationID, Agent string
	User                             user.User
	// Epoch is the session's epoch in the directory; 0 if it has no entry.
	Epoch uint64
	// Until is the time of the session's newest entry ever, if that is later than those of Entries.
	Until time.Time
	// Entries are in the order of time; their turns count from 1 in this session.
	Entries []conversation.Entry
}

// Ending describes the end of a voice session.
type Ending struct {
	// Lasted is the session's length.
	Lasted time.Duration
	// Gone: the client has left. Lost: the lease was lost, so the store is unavailable.
	Gone, Lost bool
}

// The times of a handback.
const (
	// handbackTime bounds a handback, and handbackAway one during an outage of the store.
	handbackTime = 15 * time.Second
	handbackAway = 2 * time.Minute
	// lastWait delays the client's last message, so that a client that has read it finds the conversation complete.
	lastWait = time.Second
)

// HandBack hands the conversation back on its own goroutine, in at most 15 s, or 2 min if the lease was lost; over is
// closed then. It waits at most 1 s, not at all if the client is gone. last is nil for a nil Saver. It logs failures.
func (k *Saver) HandBack(part Part, end Ending) (last *protocol.Handback, over <-chan struct{}) {
	if k == nil {
		return nil, closed
	}
	last = &protocol.Handback{ConversationID: part.ConversationID, Summary: conversation.Summary(part.Entries, end.Lasted)}
	if !k.finish() && len(part.Entries) == 0 {
		return last, closed
	}
	done, most := make(chan struct{}), handbackTime
	if end.Lost {
		most = handbackAway
	}
	go func() {
		defer close(done)
		// The session's own context has ended.
		ctx, cancel := context.WithTimeout(context.Background(), most)
		defer cancel()
		k.wait(ctx)
		if err := k.store.HandBack(ctx, part); err != nil {
			k.logger.Error("the conversation could not be handed back", "conversation_id", part.ConversationID, "error", err)
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

// A handback waits for the conversation's lease, because a running text turn would fail if the conversation changed.
const (
	leaseLife  = 30 * time.Second
	leaseWait  = 10 * time.Second
	leasePause = 100 * time.Millisecond
)

// HandBack replaces the session's entries, with retries until ctx ends. The error wraps ErrTaken or the store's.
func (d *Handoffs) HandBack(ctx context.Context, part Part) error {
	return untilStored(ctx, func() error {
		release, err := d.lease(ctx, part.ConversationID)
		if err != nil {
			return err
		}
		defer release()
		return d.write(ctx, part)
	})
}

// Save is HandBack for a session that continues. It does not wait for a running text turn.
func (d *Handoffs) Save(ctx context.Context, part Part) error {
	return untilStored(ctx, func() error { return d.write(ctx, part) })
}

// untilStored repeats try until the store answers or ctx ends. An unacknowledged try may have been stored.
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

// A node that takes a session over changes the conversation's revision after it has become the owner, so a previous
// owner that checks its ownership between reading and writing cannot write.
func (d *Handoffs) write(ctx context.Context, part Part) error {
	newest := part.Until
	for _, e := range part.Entries {
		if e.At.After(newest) {
			newest = e.At
		}
	}
	return d.talks.Update(ctx, part.ConversationID, func(c *conversation.Conversation) error {
		if err := owned(c, part.User); err != nil {
			return err
		}
		if err := d.voice.Fenced(ctx, part.SessionID, part.Epoch, part.User.String(), part.ConversationID); err != nil {
			return err
		}
		if part.SessionID != "" && slices.ContainsFunc(c.Entries,
			func(e conversation.Entry) bool { return e.SessionID == part.SessionID && e.At.After(newest) }) {
			return store.ErrFenced // another node continued and ended the session
		}
		c.User, c.Agent = part.User.String(), cmp.Or(c.Agent, part.Agent)
		c.Retell(time.Now(), part.SessionID, part.Entries...)
		return nil
	})
}

// lease waits for at most leaseWait and then continues without a lease, because the session's words must not be lost.
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

// Saver writes a voice session into its conversation, after each turn and at the end. It may be used concurrently. A
// nil Saver, of a session without a conversation, writes nothing.
type Saver struct {
	// Fixed after NewSaver.
	store  partStore
	logger *slog.Logger
	ctx    func() context.Context // of a write; stop ends it
	stop   context.CancelFunc

	mu     sync.Mutex    // guards the following fields
	next   *Part         // the next to write; nil without one
	busy   chan struct{} // closed when the writing goroutine has ended; nil without one
	wrote  bool          // Save was called with entries
	over   bool          // HandBack or Stop was called
	failed bool          // the last write failed and was logged
}

type partStore interface {
	Save(context.Context, Part) error
	HandBack(context.Context, Part) error
}

// NewSaver returns the Saver of a transcript, which writes with to; nil for a nil Transcript.
func NewSaver(y *Transcript, to partStore, logger *slog.Logger) *Saver {
	if y == nil {
		return nil
	}
	ctx, stop := context.WithCancel(context.Background())
	return &Saver{store: to, logger: logger, ctx: func() context.Context { return ctx }, stop: stop}
}

// Save writes part soon on its own goroutine, instead of an unwritten earlier one.
func (k *Saver) Save(part Part) {
	if k == nil || len(part.Entries) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over {
		return
	}
	k.next, k.wrote = &part, true
	if k.busy == nil {
		k.busy = make(chan struct{})
		go k.write(k.busy)
	}
}

func (k *Saver) write(busy chan struct{}) {
	defer close(busy)
	for {
		k.mu.Lock()
		part := k.next
		if k.next = nil; part == nil {
			k.busy = nil
			k.mu.Unlock()
			return
		}
		k.mu.Unlock()
		ctx, cancel := context.WithTimeout(k.ctx(), handbackTime)
		err := k.store.Save(ctx, *part)
		stopped := k.ctx().Err() != nil
		cancel()
		k.mu.Lock()
		if err != nil && !k.failed && !stopped {
			k.logger.Warn("the conversation could not be saved; the next save will include it",
				"conversation_id", part.ConversationID, "error", err)
		}
		k.failed = err != nil
		k.mu.Unlock()
	}
}

func (k *Saver) finish() (wrote bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over, k.next = true, nil
	k.stop()
	return k.wrote
}

// idle returns a channel that is closed when no write runs any more.
func (k *Saver) idle() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.busy == nil {
		return closed
	}
	return k.busy
}

var closed = func() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}()

func (k *Saver) wait(ctx context.Context) {
	select {
	case <-k.idle():
	case <-ctx.Done():
	}
}

// Flush saves part and waits for it, or until ctx ends. The write logs failures.
func (k *Saver) Flush(ctx context.Context, part Part) {
	if k == nil {
		return
	}
	k.Save(part)
	k.wait(ctx)
}

// Stop ends Save without a handback. over is closed when no write runs any more.
func (k *Saver) Stop() (over <-chan struct{}) {
	if k == nil {
		return closed
	}
	k.finish()
	return k.idle()
}
