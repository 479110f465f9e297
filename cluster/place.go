package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"voicegw/store"
)

// Checkpoints keeps what another node needs to go on with a session; *store.Checkpoints implements
// it and documents each method.
type Checkpoints interface {
	Note(of store.Checkpoint)
	Save(ctx context.Context, of store.Checkpoint) error
	Flush(ctx context.Context, session string) error
	Load(ctx context.Context, session string) (store.Checkpoint, error)
	Remove(session string)
}

// place is a session's place in the directory: it implements session.Place. At most one goroutine
// writes for it at a time, and only while something is to be written.
type place struct {
	// Fixed after newPlace.
	n    *Node
	ctx  func() context.Context // of the writes; done once the session is over
	stop context.CancelFunc
	// entered is closed when owned is known: when the first record was written or never will be.
	entered chan struct{}

	mu      sync.Mutex // guards the following fields
	record  store.SessionRecord
	owned   *store.Owned      // nil until the first record is written
	changes unwritten         // of record
	writing chan struct{}     // closed when the goroutine that writes has ended; nil without one
	noted   *store.Checkpoint // waits until owned is known
	lost    []func()          // to call when the session is lost, while owned is not known
	over    bool              // given or left: nothing more is written
}

func (n *Node) newPlace(r store.SessionRecord) *place {
	ctx, stop := context.WithCancel(context.Background())
	r.State = store.SessionLive // Directory.Enter sets it as well, and Update writes the whole record
	return &place{n: n, ctx: func() context.Context { return ctx }, stop: stop, record: r, entered: make(chan struct{})}
}

// enter writes the first record.
func (p *place) enter() {
	defer close(p.entered)
	owned, err := backoff.Retry(p.ctx(), func() (*store.Owned, error) {
		p.mu.Lock()
		r := p.record
		p.changes.begin()
		p.mu.Unlock()
		o, err := p.n.o.Directory.Enter(p.ctx(), r)
		again := errors.Is(err, store.ErrUnavailable)
		p.mu.Lock()
		p.changes.end(again)
		p.mu.Unlock()
		if err != nil && !again {
			return nil, backoff.Permanent(err)
		}
		return o, err
	}, backoff.WithBackOff(backoff.NewExponentialBackOff()), backoff.WithMaxElapsedTime(writeTime))
	if err != nil {
		p.mu.Lock()
		p.changes.stop()
		p.mu.Unlock()
		if p.ctx().Err() == nil {
			p.n.o.Logger.Warn("a session is not in the directory: its client can come back to this node only", "session_id", p.record.ID, "error", err)
		}
		return
	}
	p.holds(owned)
}

// holds records that the session's record is written, and writes what has waited for that.
func (p *place) holds(owned *store.Owned) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owned = owned
	if p.over {
		return
	}
	for _, f := range p.lost {
		p.watch(owned, f)
	}
	p.lost = nil
	if p.noted != nil {
		p.note(*p.noted)
		p.noted = nil
	}
	if p.changes.changed {
		p.writeSoon()
	}
}

// Update implements session.Place.
func (p *place) Update(change func(*store.SessionRecord)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.record)
	p.changes.changed = true
	if p.owned != nil && !p.over {
		p.writeSoon()
	}
}

// Written implements session.Place.
func (p *place) Written() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changes.written()
}

// writeSoon starts a goroutine that writes the record, unless one runs. The caller must hold mu.
func (p *place) writeSoon() {
	if p.writing != nil {
		return
	}
	done := make(chan struct{})
	p.writing = done
	p.n.writes.Go(func() {
		defer close(done)
		p.write()
	})
}

// write writes the record until there is nothing more to write.
func (p *place) write() {
	wait := backoff.NewExponentialBackOff()
	for {
		p.mu.Lock()
		next, more := p.record, p.changes.changed && !p.over
		if !more {
			p.writing = nil
			p.mu.Unlock()
			return
		}
		p.changes.begin()
		p.mu.Unlock()
		err := p.owned.Update(p.ctx(), func(r *store.SessionRecord) { *r = next })
		p.mu.Lock()
		p.changes.end(errors.Is(err, store.ErrUnavailable))
		p.mu.Unlock()
		switch {
		case err == nil:
			wait.Reset()
			continue
		case !errors.Is(err, store.ErrUnavailable):
			if !errors.Is(err, store.ErrFenced) {
				p.n.o.Logger.Warn("a session's record is not written", "session_id", next.ID, "error", err)
			}
			continue
		}
		select {
		case <-time.After(wait.NextBackOff()):
		case <-p.ctx().Done():
			p.mu.Lock()
			p.writing = nil
			p.mu.Unlock()
			return
		}
	}
}

// Note implements session.Place.
func (p *place) Note(c store.Checkpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.over:
	case p.owned == nil:
		p.noted = &c
	default:
		p.note(c)
	}
}

// note has a checkpoint written. The caller must hold mu, and owned must be known.
func (p *place) note(c store.Checkpoint) { p.n.o.Checkpoints.Note(p.ours(c)) }

// ours returns a checkpoint as this owner writes it.
func (p *place) ours(c store.Checkpoint) store.Checkpoint {
	r := p.owned.Record()
	c.SessionID, c.Epoch = r.ID, r.Epoch
	return c
}

// Keep implements session.Place.
func (p *place) Keep(ctx context.Context) error {
	if err := p.awaitEntry(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	owned, over := p.owned, p.over
	p.mu.Unlock()
	switch {
	case over:
		return errOver
	case owned == nil:
		return nil // nobody can find it
	}
	return p.n.o.Checkpoints.Flush(ctx, owned.Record().ID) //nolint:wrapcheck // it names the store
}

// awaitEntry waits until the first record is written, or never will be.
func (p *place) awaitEntry(ctx context.Context) error {
	select {
	case <-p.entered:
		return nil
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // the caller's own
	}
}

// Give implements session.Place.
func (p *place) Give(ctx context.Context, c store.Checkpoint) error {
	if err := p.awaitEntry(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	owned, over := p.owned, p.over
	if owned == nil || over {
		p.mu.Unlock()
		return errNotEntered
	}
	p.over = true
	record := p.record
	p.mu.Unlock()
	err := p.n.o.Checkpoints.Save(ctx, p.ours(c))
	if err == nil {
		err = owned.Update(ctx, func(r *store.SessionRecord) {
			*r = record
			r.State = store.SessionMoving
		})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.changes.stop()
		p.stop()
		return nil
	}
	p.over, p.changes.changed = false, true // it may be written as given up
	p.writeSoon()
	return err //nolint:wrapcheck // it names the store
}

// giveBack gives up a session that was taken, with the checkpoint that it has.
func (p *place) giveBack(ctx context.Context) error {
	p.mu.Lock()
	p.over = true
	p.changes.stop()
	p.mu.Unlock()
	p.stop()
	return p.owned.Update(ctx, func(r *store.SessionRecord) { r.State = store.SessionMoving }) //nolint:wrapcheck // it names the store
}

var (
	errNotEntered = errors.New("cluster: the session is not in the directory")
	errOver       = errors.New("cluster: the session was given up or is over")
)

// Sure implements session.Place. A session that is not in the directory cannot be taken.
func (p *place) Sure() bool {
	p.mu.Lock()
	owned := p.owned
	p.mu.Unlock()
	return owned == nil || owned.Sure()
}

// WhenLost implements session.Place.
func (p *place) WhenLost(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owned == nil {
		p.lost = append(p.lost, f)
		return
	}
	p.watch(p.owned, f)
}

// watch calls f when the session is lost, unless it was given up or is over by then.
func (p *place) watch(owned *store.Owned, f func()) {
	owned.WhenLost(func() {
		p.mu.Lock()
		over := p.over
		p.mu.Unlock()
		if !over {
			f()
		}
	})
}

// Leave implements session.Place.
func (p *place) Leave() {
	p.mu.Lock()
	over, busy := p.over, p.writing
	p.over = true
	p.changes.stop()
	p.mu.Unlock()
	p.stop()
	if !over {
		p.writeEnd(busy)
	}
}

// End implements session.Place.
func (p *place) End() {
	p.mu.Lock()
	busy := p.writing
	p.over = true
	p.changes.stop()
	p.mu.Unlock()
	p.stop()
	p.writeEnd(busy)
}

// writeEnd writes that the session is over, once the goroutine that closes busy has ended.
func (p *place) writeEnd(busy <-chan struct{}) {
	p.n.writes.Go(func() {
		<-p.entered
		if busy != nil {
			<-busy
		}
		if p.owned == nil {
			return
		}
		id := p.owned.Record().ID
		switch err := p.owned.End(context.Background()); {
		case errors.Is(err, store.ErrFenced):
			return // the checkpoint is another node's
		case err != nil:
			p.n.o.Logger.Warn("the directory still has a session that is over", "session_id", id, "error", err)
		}
		p.n.o.Checkpoints.Remove(id)
	})
}
