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

// paced writes checkpoints on a few goroutines that run only while there is work.
type paced struct {
	// Immutable.
	write writeCheckpoint
	start func(f func()) bool
	done  <-chan struct{}
	log   *slog.Logger
	wake  chan struct{} // requests work; capacity 1, never closed

	mu       sync.Mutex // guards the following fields
	sessions map[string]*pacedSession
	writers  int  // running goroutines of run
	failed   bool // the last write failed and was logged
}

// pacedSession is the state of a session. The mutex of paced guards the fields after result.
type pacedSession struct {
	writing sync.Mutex // held for a write
	result  error      // of the newest write; guarded by writing

	waits    bool        // pending must be written
	since    time.Time   // since when
	busy     bool        // a goroutine of run is writing it
	pending  *Checkpoint // nil removes the checkpoint
	next     time.Time   // when a write is due at an even pace; a burst may be earlier
	revision uint64      // of the stored checkpoint, if known
	epoch    uint64      // of that revision
}

func newPaced(write writeCheckpoint, start func(func()) bool, done <-chan struct{}, log *slog.Logger) *paced {
	return &paced{write: write, start: start, done: done, log: log, wake: make(chan struct{}, 1), sessions: map[string]*pacedSession{}}
}

func (p *paced) session(id string) *pacedSession {
	s := p.sessions[id]
	if s == nil {
		s = &pacedSession{next: time.Now()}
		p.sessions[id] = s
	}
	return s
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

// note replaces the pending checkpoint, to be written when its session's pace allows. It doesn't block.
func (p *paced) note(id string, of *Checkpoint) {
	p.mu.Lock()
	s := p.session(id)
	s.waitFor(of)
	if of == nil {
		s.next = time.Time{}
	}
	p.mu.Unlock()
	p.begin()
}

// begin starts another goroutine, or wakes one.
func (p *paced) begin() {
	p.mu.Lock()
	more := p.writers < mostWriters
	if more {
		p.writers++
	}
	p.mu.Unlock()
	if !more || !p.start(p.run) {
		poke(p.wake)
	}
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
	_, err := p.newest(ctx, id, s)
	if errors.Is(err, ErrUnavailable) {
		p.begin()
	}
	return err
}

// newest writes the pending checkpoint. Without one, another goroutine has written it, and newest returns that result.
// While the store is unavailable the checkpoint is pending again, unless there is a newer one. The caller must hold
// s.writing.
func (p *paced) newest(ctx context.Context, id string, s *pacedSession) (wrote bool, err error) {
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
	revision, err := p.write(ctx, id, of, known)
	s.result = err
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.revision = revision; errors.Is(err, ErrFenced) {
		s.revision = 0 // it belongs to the next owner and must not be overwritten
	}
	// Immediate writes delay the next paced one by no more than a paced one would.
	now := time.Now()
	s.next = now.Add(min(max(s.next.Sub(now), 0), checkpointBurst*checkpointEvery) + checkpointEvery)
	switch {
	case s.waits, p.sessions[id] != nil && p.sessions[id] != s: // there is a newer one
	case errors.Is(err, ErrUnavailable):
		s.waitFor(of)
		s.next = now.Add((1 + checkpointBurst) * checkpointEvery)
		p.sessions[id] = s
	case of == nil && err == nil: // any other result may be asked for
		delete(p.sessions, id)
	}
	return true, err
}

// run writes until nothing is pending, or nothing is due and another goroutine is waiting.
func (p *paced) run() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// After a write it continues without a timer: many zero timers in one synctest bubble break the race detector (Go
	// issue 78156, read on 2026-11-27).
	again := make(chan time.Time)
	close(again)
	for {
		id, s, wait, more := p.due(time.Now())
		if !more {
			return
		}
		var due <-chan time.Time = again
		if s != nil {
			p.one(ctx, id, s)
		} else {
			due = time.After(wait)
		}
		select {
		case <-due:
		case <-p.wake:
		case <-p.done:
			return
		}
	}
}

// due returns the session whose checkpoint has been due longest, or the wait until one is due. The session is the
// caller's until one has written it. more is false if the caller must return.
func (p *paced) due(now time.Time) (id string, s *pacedSession, wait time.Duration, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var at time.Time
	for name, is := range p.sessions {
		switch {
		case is.busy:
		case !is.waits:
			if now.Sub(is.next) > checkpointLife { // its checkpoint has expired
				delete(p.sessions, name)
			}
		case s == nil || is.dueAt().Before(at):
			id, s, at = name, is, is.dueAt()
		}
	}
	switch {
	case s == nil:
	case !at.After(now):
		s.busy = true
		return id, s, 0, true
	case p.writers == 1:
		return "", nil, at.Sub(now), true
	}
	p.writers--
	return "", nil, 0, false
}

// one writes a session's pending checkpoint.
func (p *paced) one(ctx context.Context, id string, s *pacedSession) {
	s.writing.Lock()
	defer s.writing.Unlock()
	wrote, err := p.newest(ctx, id, s)
	p.mu.Lock()
	defer p.mu.Unlock()
	s.busy = false
	if !wrote {
		return
	}
	if err != nil && !p.failed && !errors.Is(err, ErrFenced) {
		p.log.Warn("store_checkpoint_not_written", "session_id", id, "error", err)
	}
	p.failed = err != nil
}
