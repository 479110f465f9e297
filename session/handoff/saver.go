package handoff

import (
	"context"
	"log/slog"
	"sync"
)

// Saver writes a voice session into its conversation: after each turn, so that a crash loses nothing, and at the
// session's end. Its methods may be used concurrently. A nil Saver, of a session without a conversation, writes
// nothing.
type Saver struct {
	// Fixed after NewSaver.
	store interface {
		Save(context.Context, Part) error
		HandBack(context.Context, Part) error
	}
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

// NewSaver returns the Saver of a transcript, which writes with to; nil for a nil Transcript.
func NewSaver(y *Transcript, to interface {
	Save(context.Context, Part) error
	HandBack(context.Context, Part) error
}, logger *slog.Logger) *Saver {
	if y == nil {
		return nil
	}
	ctx, stop := context.WithCancel(context.Background())
	return &Saver{store: to, logger: logger, ctx: func() context.Context { return ctx }, stop: stop}
}

// Save writes part soon, on a goroutine that runs while there is something to write. It replaces an unwritten earlier
// one and does not wait.
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

func (k *Saver) wait(ctx context.Context) {
	k.mu.Lock()
	busy := k.busy
	k.mu.Unlock()
	if busy == nil {
		return
	}
	select {
	case <-busy:
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

// Stop ends Save without a handback, because another process continues the session. over is closed when no write runs
// any more.
func (k *Saver) Stop() (over <-chan struct{}) {
	done := make(chan struct{})
	if k == nil {
		close(done)
		return done
	}
	k.finish()
	k.mu.Lock()
	busy := k.busy
	k.mu.Unlock()
	if busy == nil {
		close(done)
		return done
	}
	return busy
}
