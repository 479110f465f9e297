package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"

	"voicegw/store"
)

// Checkpoints stores the state that another node needs to continue a session; *store.Checkpoints implements it and
// documents each method.
type Checkpoints interface {
	Note(of store.Checkpoint)
	Save(ctx context.Context, of store.Checkpoint) error
	Flush(ctx context.Context, session string) error
	Load(ctx context.Context, session string) (store.Checkpoint, error)
	Remove(session string)
}

// place is a session's record in the directory; it implements session.Place. At most one of the node's writers writes
// for it at a time. An idle place holds almost nothing: the store's handle has the record.
type place struct {
	n     *Node  // immutable
	doubt *doubt // nil if this node runs the session, or once resolved

	mu sync.Mutex // guards the following fields
	// next is the record to write; nil if none. The pointed-to record is immutable.
	next    *store.SessionRecord
	changes unwritten         // waiters for next
	owned   *store.Owned      // nil until the first record is written
	noted   *store.Checkpoint // a checkpoint to write once owned is set
	settled bool              // the first record was written or has failed permanently
	await   chan struct{}     // closed with settled; nil without waiters
	queued  bool              // in the node's queue or with a writer
	writing chan struct{}     // closed when the current writer is done; nil without one
	lost    []func()          // callbacks for when another node takes the session
	isLost  bool
	over    bool // released or left: only the end is still written
	left    bool // Leave was called
	ending  bool // the end must be written
	// released: the store may say that any node can take the session, until next is written.
	released bool
}

func (n *Node) newPlace(r store.SessionRecord, owned *store.Owned) *place {
	p := &place{n: n}
	if owned == nil {
		r.State = store.SessionLive // Directory.Enter sets it too, and Update writes the whole record
		p.next = &r
		p.changes.changed = true // the first record is not written yet
		return p
	}
	p.holds(owned)
	return p
}

// job is a writer's next task for a place.
type job int

const (
	jobNothing job = iota
	jobEnter
	jobUpdate
	jobEnd
	jobSettle
)

// job returns the next task. The caller must hold mu.
func (p *place) job() job {
	switch {
	case p.doubt != nil:
		return jobSettle
	case p.ending && p.owned != nil:
		return jobEnd
	case p.over || p.next == nil:
		return jobNothing
	case p.owned != nil:
		return jobUpdate
	case !p.settled:
		return jobEnter
	}
	return jobNothing
}

// soon queues the place for a writer. The caller must hold mu.
func (p *place) soon() {
	if !p.queued && p.job() != jobNothing {
		p.queued = true
		p.n.enqueue(p, p.hurries())
	}
}

// hurries reports whether a caller waits for the write. The caller must hold mu.
func (p *place) hurries() bool {
	what := p.job()
	return what == jobEnter || what == jobSettle || p.changes.awaited()
}

// awaited is hurries for a caller that doesn't hold mu.
func (p *place) awaited() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hurries()
}

// write performs one task on a writer's goroutine. more means the place must be queued again. The error wraps
// store.ErrUnavailable; others have been handled.
func (p *place) write(ctx context.Context) (more bool, err error) {
	p.mu.Lock()
	what, next, owned, doubt, done := p.job(), p.next, p.owned, p.doubt, make(chan struct{})
	p.writing = done
	if what == jobEnter || what == jobUpdate {
		p.changes.begin()
	}
	p.mu.Unlock()
	switch what {
	case jobNothing:
	case jobEnter:
		owned, err = p.n.o.Directory.Enter(ctx, *next)
	case jobUpdate:
		err = owned.Update(ctx, func(r *store.SessionRecord) { *r = *next })
	case jobEnd:
		err = p.writeEnd(ctx, owned)
	case jobSettle:
		more, err = p.n.settle(ctx, doubt)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	close(done)
	p.writing = nil
	if what == jobEnter || what == jobUpdate {
		p.changes.end(errors.Is(err, store.ErrUnavailable))
	}
	switch {
	case what == jobSettle:
		if !more {
			p.n.doubtful.Delete(doubt.id)
			p.doubt = nil
		}
	case what == jobEnd:
		p.ending = false // an unwritten end is harmless: the record expires
	case errors.Is(err, store.ErrUnavailable):
	case what == jobEnter:
		p.entered(owned, next, err)
	default:
		p.released = p.released && err != nil
		if err != nil && !errors.Is(err, store.ErrFenced) {
			p.n.o.Logger.Warn("cannot write session record", "session_id", next.ID, "error", err)
		}
		if p.next == next {
			p.next = nil
		}
	}
	p.queued = p.job() != jobNothing
	return p.queued, err
}

// entered handles the result of the first write. The caller must hold mu.
func (p *place) entered(owned *store.Owned, wrote *store.SessionRecord, err error) {
	if err != nil {
		p.n.o.Logger.Warn("session missing from the directory: its client can resume on this gateway only",
			"session_id", wrote.ID, "error", err)
		p.next = nil
		p.changes.stop()
		p.settle()
		return
	}
	p.holds(owned)
	if p.next == wrote {
		p.next = nil
	}
}

// settle releases the waiters for owned. The caller must hold mu.
func (p *place) settle() {
	p.settled = true
	if p.await != nil {
		close(p.await)
		p.await = nil
	}
}

// holds records that the session's record was written, and writes whatever waited for that. The caller must hold mu,
// unless it is the only user of the place.
func (p *place) holds(owned *store.Owned) {
	p.owned = owned
	p.settle()
	owned.WhenLost(p.taken)
	if p.noted != nil && !p.over {
		p.note(*p.noted)
	}
	p.noted = nil
}

// record returns the record as it should be stored. The caller must hold mu, and owned or next must be set.
func (p *place) record() store.SessionRecord {
	if p.next != nil {
		return *p.next
	}
	return p.owned.Record()
}

func (p *place) Update(change func(*store.SessionRecord)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.settled && p.owned == nil {
		return // it will never be written
	}
	next := p.record()
	change(&next)
	p.next = &next
	p.changes.changed = true
	p.soon()
}

func (p *place) Written() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	done := p.changes.written()
	if p.queued && p.hurries() {
		p.n.writes.hurry(p)
	}
	return done
}

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

func (p *place) note(c store.Checkpoint) { p.n.o.Checkpoints.Note(p.ours(c)) }

func (p *place) ours(c store.Checkpoint) store.Checkpoint {
	r := p.owned.Record()
	c.SessionID, c.Epoch = r.ID, r.Epoch
	return c
}

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
		return nil // no other node can find it
	}
	return p.n.o.Checkpoints.Flush(ctx, owned.Record().ID) //nolint:wrapcheck // it names the store
}

func (p *place) awaitEntry(ctx context.Context) error {
	p.mu.Lock()
	if p.settled {
		p.mu.Unlock()
		return nil
	}
	if p.await == nil {
		p.await = make(chan struct{})
	}
	known := p.await
	p.mu.Unlock()
	return waitFor(ctx, known)
}

// waitFor waits until a channel is closed; nil returns at once.
func waitFor(ctx context.Context, done <-chan struct{}) error {
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // the caller's own
	}
}

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
	record, busy := p.record(), p.writing
	p.mu.Unlock()
	err := waitFor(ctx, busy) // otherwise that write could follow the release
	if err == nil {
		err = p.n.o.Checkpoints.Save(ctx, p.ours(c))
	}
	if err == nil {
		err = owned.Update(ctx, func(r *store.SessionRecord) {
			*r = record
			r.State = store.SessionMoving
		})
		if err != nil && !errors.Is(err, store.ErrFenced) {
			err = p.keep(ctx, owned, record, err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && p.isLost {
		err = store.ErrFenced // taken was called in between without callbacks
	}
	if err == nil || errors.Is(err, store.ErrFenced) {
		p.changes.stop()
		return err //nolint:wrapcheck // it names the store
	}
	p.over, p.ending = p.left, p.ending || p.left
	if p.next == nil {
		p.next = &record // it may have been written as released
		p.changes.changed = true
	}
	p.soon()
	return err //nolint:wrapcheck // it names the store
}

// keep undoes a release whose outcome is unknown, because another node may have read it. It returns store.ErrFenced if
// another node has taken the session, otherwise why it wasn't released. It gets a little more time than ctx.
func (p *place) keep(ctx context.Context, owned *store.Owned, record store.SessionRecord, why error) error {
	more, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.n.keepTime)
	defer cancel()
	err := owned.Update(more, func(r *store.SessionRecord) { *r = record })
	if errors.Is(err, store.ErrFenced) {
		return err //nolint:wrapcheck // it names the store
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.released = err != nil
	return why
}

// Return implements session.Place, with the checkpoint that was found.
func (p *place) Return(ctx context.Context) error {
	p.mu.Lock()
	p.over = true
	p.changes.stop()
	owned := p.owned
	p.mu.Unlock()
	is := owned.Record()
	err := owned.Update(ctx, func(r *store.SessionRecord) { r.State = store.SessionMoving })
	if err != nil && !errors.Is(err, store.ErrFenced) {
		p.n.doubts(is)
	}
	return err //nolint:wrapcheck // it names the store
}

var (
	errNotEntered = errors.New("cluster: the session is not in the directory")
	errOver       = errors.New("cluster: the session was released or has ended")
)

// Sure implements session.Place. A session missing from the directory can't be taken.
func (p *place) Sure() bool {
	p.mu.Lock()
	owned, released := p.owned, p.released
	p.mu.Unlock()
	return owned == nil || !released && owned.Sure()
}

func (p *place) WhenLost(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !p.isLost:
		p.lost = append(p.lost, f)
	case !p.over:
		go f()
	}
}

// taken notifies the session that another node has taken it, unless it has been released or has ended.
func (p *place) taken() {
	p.mu.Lock()
	lost := p.lost
	p.isLost, p.lost = true, nil
	if p.over {
		lost = nil
	}
	p.mu.Unlock()
	for _, f := range lost {
		f()
	}
}

func (p *place) Leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = true
	p.changes.stop()
	if !p.over {
		p.over, p.ending = true, true
		p.soon()
	}
}

func (p *place) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changes.stop()
	p.over, p.ending = true, true
	p.soon()
}

// writeEnd records the session's end. It gives up while the store is unavailable: the record expires, and the queue must
// not grow.
func (p *place) writeEnd(ctx context.Context, owned *store.Owned) error {
	id, err := owned.Record().ID, errAway
	if !p.n.writes.away() {
		err = owned.End(ctx)
	}
	switch {
	case errors.Is(err, store.ErrFenced):
		return nil // the checkpoint belongs to another node
	case err != nil:
		p.n.o.Logger.Warn("cannot remove ended session from the directory", "session_id", id, "error", err)
	}
	p.n.o.Checkpoints.Remove(id)
	return err
}

// doubt is a session that this node may or may not own, because the store did not answer in time and may list the node
// as the owner of a session that runs nowhere. The node's writers resolve it: they acquire the session again, which
// fences off writes still in flight, and release it. Then its client can resume through any node. Only the writer that
// holds its place uses it.
type doubt struct {
	id   string
	node string // this node
	from uint64 // the epoch of the attempt
	lost *bool  // whether the record said that the owner was lost; nil before it was found
}

// doubts records that a session may be owned by this node. found is its record as it would have been written, or as it
// was written and not released.
func (n *Node) doubts(found store.SessionRecord) {
	if n.o.Self == nil {
		return
	}
	d := &doubt{id: found.ID, node: n.o.Self(), from: found.Epoch}
	if _, is := n.doubtful.LoadOrStore(found.ID, d); is {
		return
	}
	p := &place{n: n, doubt: d, settled: true}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.soon()
}

func (n *Node) inDoubt(id string) bool {
	_, is := n.doubtful.Load(id)
	return is
}

// settle makes one attempt. more requests another one; the error wraps store.ErrUnavailable or has been handled.
func (n *Node) settle(ctx context.Context, d *doubt) (more bool, err error) {
	found, err := n.o.Directory.Find(ctx, d.id)
	switch {
	case errors.Is(err, store.ErrUnavailable):
		return true, err
	case err != nil, found.State == store.SessionOver, found.Node != d.node && found.Epoch != d.from,
		found.Node == d.node && found.State == store.SessionMoving:
		return false, nil // ended, released or owned by another node
	}
	if d.lost == nil {
		lost := found.Lost || found.Node != d.node && found.State != store.SessionMoving
		d.lost = &lost
	}
	owned, err := n.o.Directory.Take(ctx, found)
	if err == nil {
		err = owned.Update(ctx, func(r *store.SessionRecord) { r.State, r.Lost = store.SessionMoving, *d.lost })
	}
	switch {
	case err == nil:
		n.o.Logger.Info("session with unclear owner released", "session_id", d.id, "epoch", owned.Record().Epoch)
		return false, nil
	case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrUnavailable):
		return true, err
	}
	n.o.Logger.Error("session may be lost: its owner is unknown", "session_id", d.id, "error", err)
	return false, nil
}

// unwritten tracks a record's changes that are not in the store, and their waiters. The mutex of its place guards it.
type unwritten struct {
	changed bool            // since the last write began
	writes  bool            // a write is in progress
	never   bool            // nothing more will be written
	waiters []chan struct{} // closed when their changes are stored
	now     int             // the first of them wait for the current write, the others for the next
}

// written returns a channel that is closed when all changes are stored or never will be.
func (u *unwritten) written() <-chan struct{} {
	done := make(chan struct{})
	if u.never || !u.changed && !u.writes {
		close(done)
		return done
	}
	u.waiters = append(u.waiters, done)
	if !u.changed {
		u.now++ // then no others wait for the next write
	}
	return done
}

func (u *unwritten) awaited() bool { return len(u.waiters) > u.now }

func (u *unwritten) begin() { u.changed, u.writes, u.now = false, true, len(u.waiters) }

// end marks the end of the write; again means it will be retried.
func (u *unwritten) end(again bool) {
	u.writes = false
	if again && !u.never {
		u.changed, u.now = true, 0
		return
	}
	u.release(u.now)
}

func (u *unwritten) stop() {
	u.never = true
	u.release(len(u.waiters))
}

func (u *unwritten) release(n int) {
	for _, done := range u.waiters[:n] {
		close(done)
	}
	u.waiters, u.now = slices.Clone(u.waiters[n:]), 0
}
