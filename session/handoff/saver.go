package handoff

import (
	"context"
	"log/slog"
	"sync"
)

// Keeper writes what is said in a voice session into its conversation: at the end of each turn, so
// that it is not lost if this process is killed, and at the session's end. Its methods may be used
// concurrently. A nil Keeper, of a session without a conversation, writes nothing.
type Saver struct {
	// Fixed after NewKeeper.
	store interface {
		Save(context.Context, Part) error
		HandBack(context.Context, Part) error
	}
	logger *slog.Logger
	ctx    func() context.Context // of a write; stop ends it
	stop   context.CancelFunc

	mu     sync.Mutex    // guards the following fields
	next   *Part         // waits to be written; nil without one
	busy   chan struct{} // closed when the goroutine that writes has ended; nil without one
	wrote  bool          // something was to be written
	over   bool          // Return was called
	failed bool          // the last write failed, which was logged
}

// NewKeeper returns the keeper of a story, which writes with desk; nil for a nil Story.
func NewSaver(y *Transcript, desk interface {
	Save(context.Context, Part) error
	HandBack(context.Context, Part) error
}, logger *slog.Logger) *Saver {
	if y == nil {
		return nil
	}
	ctx, stop := context.WithCancel(context.Background())
	return &Saver{store: desk, logger: logger, ctx: func() context.Context { return ctx }, stop: stop}
}

// Keep has what was said until now written soon, by a goroutine that runs while there is something
// to write; what waits is replaced. It does not wait.
func (k *Saver) Save(said Part) {
	if k == nil || len(said.Entries) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over {
		return
	}
	k.next, k.wrote = &said, true
	if k.busy == nil {
		k.busy = make(chan struct{})
		go k.write(k.busy)
	}
}

// write writes until nothing waits any more.
func (k *Saver) write(busy chan struct{}) {
	defer close(busy)
	for {
		k.mu.Lock()
		said := k.next
		if k.next = nil; said == nil {
			k.busy = nil
			k.mu.Unlock()
			return
		}
		k.mu.Unlock()
		ctx, cancel := context.WithTimeout(k.ctx(), handbackTime)
		err := k.store.Save(ctx, *said)
		stopped := k.ctx().Err() != nil
		cancel()
		k.mu.Lock()
		if err != nil && !k.failed && !stopped {
			k.logger.Warn("what was said could not be kept yet", "conversation_id", said.ConversationID, "error", err)
		}
		k.failed = err != nil
		k.mu.Unlock()
	}
}

// finish ends Keep, and says whether it has written anything.
func (k *Saver) finish() (wrote bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over, k.next = true, nil
	k.stop()
	return k.wrote
}

// wait waits until no write runs any more, or ctx ends.
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

// Flush has what was said until now written, and waits for it, but no longer than ctx. What could
// not be written is logged by the write.
func (k *Saver) Flush(ctx context.Context, said Part) {
	if k == nil {
		return
	}
	k.Save(said)
	k.wait(ctx)
}

// Leave ends Keep without a handback, because another process goes on with the session. over is
// closed when no write runs any more.
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
