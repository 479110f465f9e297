package store

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

const (
	// checkpointEvery is how often a session's checkpoint is written at most, in the long run.
	checkpointEvery = time.Second
	// checkpointBurst is how many more may be written at once after a quiet time: what the user has
	// just said must not wait, because it is lost if the process dies.
	checkpointBurst = 3
	// mostWriters is how many checkpoints are written at the same time. A store of several servers takes
	// some ms for each, and a third of a second when everything is busy: the sessions of one gateway must
	// not wait for each other then, because what is not written is lost if the process dies.
	mostWriters = 64
)

// writeCheckpoint writes a session's checkpoint over that of the revision known, or removes it if
// of is nil, and returns the revision that is there now.
type writeCheckpoint func(ctx context.Context, session string, of *Checkpoint, known uint64) (uint64, error)

// paced writes checkpoints on a few goroutines, which run while something is to be written.
type paced struct {
	// Fixed after newPaced.
	write writeCheckpoint
	start func(f func()) bool
	done  <-chan struct{}
	log   *slog.Logger
	wake  chan struct{} // holds a note that there is more to write; never closed

	mu       sync.Mutex // guards the following fields
	sessions map[string]*pacedSession
	writers  int  // goroutines of run
	failed   bool // the last write failed, which was logged
}

// pacedSession is what paced knows of a session. The mutex of paced guards what follows writing.
type pacedSession struct {
	writing sync.Mutex // held for a write
	result  error      // of the newest write; guarded by writing

	waits    bool        // pending is to be written
	since    time.Time   // since when something waits
	busy     bool        // a goroutine of run writes it
	pending  *Checkpoint // nil means that the checkpoint is to be removed
	next     time.Time   // when a write would be due at an even pace; a burst may be ahead of it
	revision uint64      // of the session's checkpoint in the store, as far as it is known
	epoch    uint64      // of that revision
}

func newPaced(write writeCheckpoint, start func(func()) bool, done <-chan struct{}, log *slog.Logger) *paced {
	return &paced{write: write, start: start, done: done, log: log, wake: make(chan struct{}, 1), sessions: map[string]*pacedSession{}}
}

// session returns what is known of a session. The caller must hold mu.
func (p *paced) session(id string) *pacedSession {
	s := p.sessions[id]
	if s == nil {
		s = &pacedSession{}
		p.sessions[id] = s
	}
	return s
}

// waitFor has a checkpoint wait to be written, in the place of one that does. The caller must hold mu.
func (s *pacedSession) waitFor(of *Checkpoint) {
	if !s.waits {
		s.since = time.Now()
	}
	s.waits, s.pending = true, of
}

// dueAt is when what waits is to be written. The caller must hold mu.
func (s *pacedSession) dueAt() time.Time {
	if at := s.next.Add(-checkpointBurst * checkpointEvery); at.After(s.since) {
		return at
	}
	return s.since
}

// note has a checkpoint written as soon as its session's pace allows, in the place of one that
// waits. It does not wait.
func (p *paced) note(id string, of *Checkpoint) {
	p.mu.Lock()
	s := p.session(id)
	s.waitFor(of)
	if of == nil {
		s.next = time.Time{}
	}
	begin := p.writers < mostWriters
	if begin {
		p.writers++
	}
	p.mu.Unlock()
	if begin && p.start(p.run) {
		return
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// now writes a checkpoint at once, in the place of one that waits, or a newer one that was noted
// meanwhile.
func (p *paced) now(ctx context.Context, id string, of *Checkpoint) error {
	p.mu.Lock()
	s := p.session(id)
	s.waitFor(of)
	p.mu.Unlock()
	return p.flush(ctx, id)
}

// flush writes at once what waits of a session. If nothing does, it returns what came of the last write.
func (p *paced) flush(ctx context.Context, id string) error {
	p.mu.Lock()
	s := p.session(id)
	p.mu.Unlock()
	s.writing.Lock()
	defer s.writing.Unlock()
	newest, err := p.newest(ctx, id, s)
	if newest != nil && errors.Is(err, ErrUnavailable) {
		p.again(id, newest)
	}
	return err
}

// again has a checkpoint that could not be written written later, unless there is a newer one.
func (p *paced) again(id string, of *Checkpoint) {
	p.mu.Lock()
	waits := p.session(id).waits
	p.mu.Unlock()
	if !waits {
		p.note(id, of)
	}
}

// newest writes what waits of a session, and returns it. If nothing waits, another goroutine has
// written it, and newest returns what came of that. The caller must hold s.writing.
func (p *paced) newest(ctx context.Context, id string, s *pacedSession) (*Checkpoint, error) {
	p.mu.Lock()
	waits, of := s.waits, s.pending
	s.waits, s.pending = false, nil
	p.mu.Unlock()
	if waits {
		s.result = p.carryOut(ctx, id, s, of)
	}
	return of, s.result
}

// carryOut writes, and notes what is known of the session then. The caller must hold s.writing.
func (p *paced) carryOut(ctx context.Context, id string, s *pacedSession, of *Checkpoint) error {
	p.mu.Lock()
	known := s.revision
	if of != nil && of.Epoch != s.epoch {
		known, s.epoch = 0, of.Epoch // whoever wrote that revision may have been another owner
	}
	p.mu.Unlock()
	revision, err := p.write(ctx, id, of, known)
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.revision = revision; errors.Is(err, ErrFenced) {
		s.revision = 0 // it is the next owner's, which must not be written over
	}
	now := time.Now()
	if s.next.Before(now) {
		s.next = now
	}
	s.next = s.next.Add(checkpointEvery)
	if latest := now.Add((1 + checkpointBurst) * checkpointEvery); s.next.After(latest) {
		s.next = latest // writes that do not wait hold up the next one for no longer than one that does
	}
	if of == nil && err == nil && !s.waits && p.sessions[id] == s { // what came of any other write may be asked
		delete(p.sessions, id)
	}
	return err
}

// run writes until nothing waits any more, or nothing is due and another goroutine is there.
func (p *paced) run() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// After a write it looks again at once, without a timer: many timers of zero at once in one bubble of
	// testing/synctest break the race detector (Go issue 78156, read on 2026-11-27).
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

// due returns the session whose checkpoint has been due for longest, to be written now, or after which time
// there is one. The session is the caller's until one has written it. more is false if the caller must return.
func (p *paced) due(now time.Time) (id string, s *pacedSession, wait time.Duration, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var at time.Time
	for name, is := range p.sessions {
		switch {
		case is.busy:
		case !is.waits:
			if now.Sub(is.next) > checkpointLife { // its checkpoint has ended
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

// one writes the checkpoint of a session that waits. One that could not be written waits again,
// unless it is too big or another node has the session.
func (p *paced) one(ctx context.Context, id string, s *pacedSession) {
	s.writing.Lock()
	defer s.writing.Unlock()
	p.mu.Lock()
	waits := s.waits
	p.mu.Unlock()
	of, err := p.newest(ctx, id, s)
	p.mu.Lock()
	defer p.mu.Unlock()
	s.busy = false
	if !waits {
		return
	}
	if err != nil && !p.failed && !errors.Is(err, ErrFenced) {
		p.log.Warn("store_checkpoint_not_written", "session_id", id, "error", err)
	}
	p.failed = err != nil
	if errors.Is(err, ErrUnavailable) && !s.waits {
		s.waitFor(of)
		s.next = time.Now().Add((1 + checkpointBurst) * checkpointEvery)
		p.sessions[id] = s
	}
}
