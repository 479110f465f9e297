package audit

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	// The bounds of a batch: records, and their bytes before they are encoded.
	batchRecords = 256
	batchBytes   = 256 << 10

	// The pause after a failure begins with the first and doubles up to the last.
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
	// attemptTime bounds one attempt to append to a stream.
	attemptTime = 10 * time.Second
	// complainEvery is how often a continuing failure is logged.
	complainEvery = 30 * time.Second
)

// entry is one record in a queue. Both lanes share it.
type entry struct {
	record Record
	size   int       // bytes, roughly
	at     time.Time // when it was queued

	written chan struct{} // the record's; nil once closed
	places  int           // lanes in which the record waits; guarded by Log.mu

	once sync.Once
	line []byte // with its line break; made once
}

// entrySize is roughly what a record takes without its arguments, in bytes.
const entrySize = 768

// settle closes the record's Written if the record waits in no lane. The caller must hold Log.mu.
func (e *entry) settle() {
	if e.places == 0 && e.written != nil {
		close(e.written)
		e.written = nil
	}
}

// encoded returns the record's line, with its line break.
func (e *entry) encoded(a Arguments) []byte {
	e.once.Do(func() {
		e.line = encode(&e.record, a)
		e.record = Record{} // only the line is needed from here on
	})
	return e.line
}

// writer writes lines, each with its line break, and returns how many of them are written for
// good: after an error the others are offered again.
type writer func(ctx context.Context, lines [][]byte) (int, error)

// lane is the queue of one place and the goroutine that empties it.
type lane struct {
	// Fixed after newLane.
	log   *Log
	name  string
	write writer
	// wake tells run that something waits; from take, to run, one signal is enough. It is
	// never closed.
	wake chan struct{}

	// Owned by run.
	complained time.Time // of the present failure
	failures   int       // failures in a row

	// Guarded by log.mu.
	waiting  []*entry  // in order
	held     int       // taken by run and not yet written
	heldAt   time.Time // when the first of them was queued; meaningless while nothing is held
	bytes    int       // of waiting and held
	written  uint64
	dropped  uint64
	reported uint64 // how many of dropped were logged
	givenUp  uint64
	failed   uint64
	lastErr  error
}

func newLane(l *Log, name string, w writer) *lane {
	return &lane{log: l, name: name, write: w, wake: make(chan struct{}, 1)}
}

// take queues an entry, or counts it as dropped. The caller holds log.mu.
func (s *lane) take(e *entry) bool {
	if s.waits() >= s.log.queue || s.bytes+e.size > maxWaiting {
		s.dropped++
		return false
	}
	s.waiting = append(s.waiting, e)
	e.places++
	s.bytes += e.size
	select {
	case s.wake <- struct{}{}:
	default: // it has been told
	}
	return true
}

// waits returns how many records are not written yet. The caller holds log.mu.
func (s *lane) waits() int { return len(s.waiting) + s.held }

// stats returns the lane's counters. The caller holds log.mu.
func (s *lane) stats() SinkStats {
	if s == nil {
		return SinkStats{}
	}
	return SinkStats{Written: s.written, Dropped: s.dropped, GivenUp: s.givenUp, Failed: s.failed, Waiting: s.waits(),
		Lag: s.lag(time.Now())}
}

// lag returns how long the oldest record has waited that is not written. The caller holds log.mu.
func (s *lane) lag(now time.Time) time.Duration {
	switch {
	case s.held > 0:
		return now.Sub(s.heldAt)
	case len(s.waiting) > 0:
		return now.Sub(s.waiting[0].at)
	default:
		return 0
	}
}

// run writes what waits until the Log is closed and the queue is empty, or ctx ends.
func (s *lane) run(ctx context.Context) {
	var spare []*entry
	for {
		taken, closed := s.takeAll(spare)
		if len(taken) == 0 {
			if closed {
				return
			}
			select {
			case <-s.wake:
			case <-s.log.closing:
			}
			spare = taken
			continue
		}
		for rest := taken; len(rest) > 0; {
			n := batch(rest)
			if !s.deliver(ctx, rest[:n], rest[n:]) {
				s.giveUp()
				return
			}
			rest = rest[n:]
		}
		clear(taken)
		spare = nil
		if cap(taken) <= 4*batchRecords { // a large slice is not kept for ever
			spare = taken[:0]
		}
	}
}

// takeAll takes the queue and leaves spare, which is empty, in its place. It reports whether the
// Log was closed: nothing comes after it.
func (s *lane) takeAll(spare []*entry) (taken []*entry, closed bool) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	taken, s.waiting = s.waiting, spare
	s.held = len(taken)
	if len(taken) > 0 {
		s.heldAt = taken[0].at
	}
	return taken, s.log.closed
}

// batch returns how many of the entries, at least one, go into the next attempt.
func batch(entries []*entry) int {
	size := 0
	for i, e := range entries {
		size += e.size
		if i > 0 && (i == batchRecords || size > batchBytes) {
			return i
		}
	}
	return len(entries)
}

// after returns when the record was queued that comes behind the first n of a batch, or of what follows
// the batch; the zero time if no record follows.
func after(batch []*entry, n int, rest []*entry) time.Time {
	if n < len(batch) {
		return batch[n].at
	}
	if len(rest) > 0 {
		return rest[0].at
	}
	return time.Time{}
}

// deliver writes a batch, again and again until the place accepts it. rest is what comes after the batch. It
// returns false if ctx ended before.
func (s *lane) deliver(ctx context.Context, entries, rest []*entry) bool {
	lines := make([][]byte, len(entries))
	for i, e := range entries {
		lines[i] = e.encoded(s.log.arguments)
	}
	pause, closing := firstPause, s.log.closing
	for ctx.Err() == nil {
		n, err := s.write(ctx, lines)
		s.account(entries[:n], after(entries, n, rest), err)
		if err == nil {
			s.recovered()
			return true
		}
		s.complain(err)
		entries, lines = entries[n:], lines[n:]
		wait := time.NewTimer(pause)
		select {
		case <-wait.C:
			pause = min(2*pause, lastPause)
		case <-closing: // the first failure: try again at once, and start with short pauses
			closing, pause = nil, firstPause
		case <-ctx.Done():
		}
		wait.Stop()
	}
	return false
}

// account counts what an attempt wrote. next is when the first record was queued that it has left.
func (s *lane) account(entries []*entry, next time.Time, err error) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	for _, e := range entries {
		s.bytes -= e.size
		e.places--
		e.settle()
	}
	s.held -= len(entries)
	if s.held > 0 && len(entries) > 0 {
		s.heldAt = next
	}
	s.written += uint64(len(entries))
	if err != nil {
		s.failed++
		s.lastErr = err
	}
}

// complain logs a failure: the first of a series, and then now and again.
func (s *lane) complain(err error) {
	s.failures++
	if s.failures > 1 && time.Since(s.complained) < complainEvery {
		return
	}
	s.complained = time.Now()
	s.log.mu.Lock()
	waiting := s.waits()
	s.log.mu.Unlock()
	s.log.logger.Error("audit cannot be written, its records wait", slog.String("sink", s.name),
		slog.Any("error", err), slog.Int("attempt", s.failures), slog.Int("waiting", waiting))
}

// recovered logs that a series of failures is over.
func (s *lane) recovered() {
	if s.failures > 0 {
		s.log.logger.Info("audit is written again", slog.String("sink", s.name), slog.Int("failures", s.failures))
	}
	s.failures = 0
}

// giveUp counts and logs everything that waits as lost.
func (s *lane) giveUp() {
	s.log.mu.Lock()
	n, err := s.waits(), s.lastErr
	s.givenUp += uint64(n)
	s.waiting, s.held, s.bytes = nil, 0, 0
	s.log.mu.Unlock()
	s.log.logger.Error("audit records lost, the time to write them is over", slog.String("sink", s.name),
		slog.Int("records", n), slog.Any("error", err))
}

// streamWriter appends to a stream. An attempt succeeds as a whole or not at all.
func streamWriter(stream Stream) writer {
	return func(ctx context.Context, lines [][]byte) (int, error) {
		ctx, cancel := context.WithTimeout(ctx, attemptTime)
		defer cancel()
		bare := make([][]byte, len(lines))
		for i, line := range lines {
			bare[i] = bytes.TrimSuffix(line, []byte{'\n'})
		}
		if err := stream.AppendAll(ctx, bare); err != nil {
			return 0, err
		}
		return len(lines), nil
	}
}

// lineWriter writes to a file. Lines that were written completely count, so that a disk which
// fills up in the middle of a batch duplicates no line. A torn line is ended before the next
// attempt, and readers skip it.
func lineWriter(w io.Writer) writer {
	var b bytes.Buffer
	torn := false
	return func(_ context.Context, lines [][]byte) (int, error) {
		b.Reset()
		if torn {
			b.WriteByte('\n')
		}
		lead := b.Len()
		for _, line := range lines {
			b.Write(line)
		}
		n, err := w.Write(b.Bytes())
		if err == nil && n < b.Len() {
			err = io.ErrShortWrite
		}
		if err == nil {
			torn = false
			return len(lines), nil
		}
		if n > 0 {
			torn = b.Bytes()[n-1] != '\n'
		}
		whole := 0
		// A line that only lacks its line break is complete: the next write adds it.
		for n -= lead; whole < len(lines) && n >= len(lines[whole])-1; whole++ {
			n -= len(lines[whole])
		}
		return whole, err
	}
}
