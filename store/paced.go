package store

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

const (
	// checkpointEvery is the average minimum interval between two writes of a session's checkpoint.
	checkpointEvery = time.Second
	// checkpointBurst is the number of extra writes at once after a quiet time: the user's latest words must not wait,
	// because a crash would lose them.
	checkpointBurst = 3
	// mostWriters is the number of concurrent checkpoint writes. Each takes a few ms in a cluster, or a third of a
	// second under load; sessions must not wait for each other then, because a crash loses what isn't written.
	mostWriters = 64
)

// writeCheckpoint writes a session's checkpoint over revision known, or removes it if of is nil, and returns the current
// revision.
type writeCheckpoint func(ctx context.Context, session string, of *Checkpoint, known uint64) (uint64, error)

// paced writes checkpoints on a few goroutines that run only while one is due.
type paced struct {
	// Immutable.
	write writeCheckpoint
	start func(f func()) bool
	done  <-chan struct{}
	log   *slog.Logger

	mu       sync.Mutex // guards the following fields
	sessions map[string]*pacedSession
	due      []*pacedSession // whose checkpoint is due, longest first
	writers  int             // running goroutines of run
	failed   bool            // the last write failed and was logged
}

// pacedSession is the state of a session. The mutex of paced guards the fields after result.
type pacedSession struct {
	id      string     // immutable
	writing sync.Mutex // held for a write
	result  error      // of the newest write; guarded by writing

	waits    bool        // pending must be written
	since    time.Time   // since when
	busy     bool        // it is in due, or a goroutine of run is writing it
	pending  *Checkpoint // nil removes the checkpoint
	next     time.Time   // when a write is due at an even pace; a burst may be earlier
	revision uint64      // of the stored checkpoint, if known
	epoch    uint64      // of that revision
	timer    *time.Timer // until pending is due or, if nothing waits, the stored checkpoint has expired
}

func newPaced(write writeCheckpoint, start func(func()) bool, done <-chan struct{}, log *slog.Logger) *paced {
	return &paced{write: write, start: start, done: done, log: log, sessions: map[string]*pacedSession{}}
}

func (p *paced) session(id string) *pacedSession {
	s := p.sessions[id]
	if s == nil {
		s = &pacedSession{id: id, next: time.Now()}
		s.timer = time.AfterFunc(checkpointLife, func() { p.ring(s) })
		p.sessions[id] = s
	}
	return s
}

// ring handles the end of a session's timer.
func (p *paced) ring(s *pacedSession) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !s.waits && !s.busy && time.Since(s.next) >= checkpointLife && p.sessions[s.id] == s {
		delete(p.sessions, s.id)
	}
	p.schedule(s)
}

// waitFor replaces the pending checkpoint. The caller must hold mu.
func (s *pacedSession) waitFor(of *Checkpoint) {
	if !s.waits {
		s.since = time.Now()
	}
	s.waits, s.pending = true, of
}

// dueAt returns when the pending checkpoint is due. The caller must hold mu.
func (s *pacedSession) dueAt() time.Time {
	if at := s.next.Add(-checkpointBurst * checkpointEvery); at.After(s.since) {
		return at
	}
	return s.since
}

// schedule has the pending checkpoint written when it is due. The caller must hold mu.
func (p *paced) schedule(s *pacedSession) {
	if !s.waits || s.busy {
		return
	}
	if wait := time.Until(s.dueAt()); wait > 0 {
		s.timer.Reset(wait)
		return
	}
	s.busy = true
	p.due = append(p.due, s)
	if p.writers < mostWriters && p.start(p.run) { // start is false when the store is closed
		p.writers++
	}
}

// note replaces the pending checkpoint, to be written when its session's pace allows. It doesn't block.
func (p *paced) note(id string, of *Checkpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.session(id)
	s.waitFor(of)
	if of == nil {
		s.next = time.Time{}
	}
	p.schedule(s)
}

// now writes a checkpoint at once, or a newer one noted in between, instead of a pending one.
func (p *paced) now(ctx context.Context, id string, of *Checkpoint) error {
	p.mu.Lock()
	s := p.session(id)
	s.waitFor(of)
	p.mu.Unlock()
	return p.flush(ctx, id)
}

// flush writes a session's pending checkpoint at once; without one it returns the last write's result.
func (p *paced) flush(ctx context.Context, id string) error {
	p.mu.Lock()
	s := p.session(id)
	p.mu.Unlock()
	s.writing.Lock()
	defer s.writing.Unlock()
	_, err := p.newest(ctx, s)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.schedule(s) // what is not written
	return err
}

// newest writes the pending checkpoint. Without one, another goroutine has written it, and newest returns that result.
// While the store is unavailable the checkpoint is pending again, unless there is a newer one. The caller must hold
// s.writing.
func (p *paced) newest(ctx context.Context, s *pacedSession) (wrote bool, err error) {
	p.mu.Lock()
	waits, of, known := s.waits, s.pending, s.revision
	s.waits, s.pending = false, nil
	if waits && of != nil && of.Epoch != s.epoch {
		known, s.epoch = 0, of.Epoch // that revision may be another owner's
	}
	p.mu.Unlock()
	if !waits {
		return false, s.result
	}
	revision, err := p.write(ctx, s.id, of, known)
	s.result = err
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.revision = revision; errors.Is(err, ErrFenced) {
		s.revision = 0 // it belongs to the next owner and must not be overwritten
	}
	// Immediate writes delay the next paced one by no more than a paced one would.
	now := time.Now()
	s.next = now.Add(min(max(s.next.Sub(now), 0), checkpointBurst*checkpointEvery) + checkpointEvery)
	s.timer.Reset(time.Until(s.next) + checkpointLife)
	current := p.sessions[s.id]
	switch {
	case s.waits, current != nil && current != s: // there is a newer one
	case errors.Is(err, ErrUnavailable):
		s.waitFor(of)
		s.next = now.Add((1 + checkpointBurst) * checkpointEvery)
		p.sessions[s.id] = s
	case of == nil && err == nil: // any other result may be asked for
		delete(p.sessions, s.id)
	}
	return true, err
}

// run writes until nothing is due.
func (p *paced) run() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for {
		p.mu.Lock()
		if len(p.due) == 0 {
			p.writers--
			p.mu.Unlock()
			return
		}
		s := p.due[0]
		p.due[0], p.due = nil, p.due[1:]
		p.mu.Unlock()
		p.one(ctx, s)
		select {
		case <-p.done:
			return
		default:
		}
	}
}

// one writes a session's pending checkpoint.
func (p *paced) one(ctx context.Context, s *pacedSession) {
	s.writing.Lock()
	defer s.writing.Unlock()
	wrote, err := p.newest(ctx, s)
	p.mu.Lock()
	defer p.mu.Unlock()
	s.busy = false
	p.schedule(s)
	if !wrote {
		return
	}
	if err != nil && !p.failed && !errors.Is(err, ErrFenced) {
		p.log.Warn("store_checkpoint_not_written", "session_id", s.id, "error", err)
	}
	p.failed = err != nil
}
