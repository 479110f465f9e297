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
	// The bounds of a batch.
	batchRecords = 256
	batchBytes   = 256 << 10 // before encoding

	// The pause after a failure begins with firstPause and doubles up to lastPause.
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
	// attemptTime bounds one attempt to append to a stream.
	attemptTime = 10 * time.Second
	// complainEvery is the interval between log lines about a continuing failure.
	complainEvery = 30 * time.Second
)

// entry is one record in the queues of both lanes.
type entry struct {
	record Record
	size   int       // approximate, in bytes
	at     time.Time // of queueing

	written chan struct{} // the record's; nil once closed
	lanes   int           // in which the record waits; guarded by Log.mu

	once sync.Once
	line []byte // with its line break; made once
}

// entrySize is the approximate size of a record without its arguments and budget, in bytes.
const entrySize = 768

// settle closes the record's Written if the record waits in no lane. The caller must hold Log.mu.
func (e *entry) settle() {
	if e.lanes == 0 && e.written != nil {
		close(e.written)
		e.written = nil
	}
}

// encoded returns the record's line, with its line break.
func (e *entry) encoded(a Arguments) []byte {
	e.once.Do(func() {
		e.line = encode(&e.record, a)
		e.record = Record{} // to free it: only the line is needed now
	})
	return e.line
}

// writer writes lines, each with its line break, and returns the number of lines written. After an error its caller
// tries the others again.
type writer func(ctx context.Context, lines [][]byte) (int, error)

// lane is the queue of one sink and the goroutine that empties it.
type lane struct {
	// Fixed after newLane.
	log   *Log
	name  string
	write writer
	// wake, of capacity 1, wakes run after take. It is never closed.
	wake chan struct{}

	// Owned by run.
	complained time.Time // the last log line about the present failure
	failures   int       // in a row

	// Guarded by log.mu.
	waiting  []*entry  // in order
	held     int       // taken by run and not yet written
	heldAt   time.Time // when the first of them was queued; meaningless if held is 0
	bytes    int       // of waiting and held
	written  uint64
	dropped  uint64
	reported uint64 // of dropped, those in the log
	givenUp  uint64
	failed   uint64
	lastErr  error
}

func newLane(l *Log, name string, w writer) *lane {
	return &lane{log: l, name: name, write: w, wake: make(chan struct{}, 1)}
}

// take queues an entry, or counts it as dropped. The caller must hold log.mu.
func (s *lane) take(e *entry) bool {
	if s.waits() >= s.log.queue || s.bytes+e.size > maxWaiting {
		s.dropped++
		return false
	}
	s.waiting = append(s.waiting, e)
	e.lanes++
	s.bytes += e.size
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return true
}

// waits returns the number of unwritten records. The caller must hold log.mu.
func (s *lane) waits() int { return len(s.waiting) + s.held }

// stats returns the lane's counters. The caller must hold log.mu.
func (s *lane) stats() SinkStats {
	if s == nil {
		return SinkStats{}
	}
	return SinkStats{Written: s.written, Dropped: s.dropped, GivenUp: s.givenUp, Failed: s.failed, Waiting: s.waits(),
		Lag: s.lag(time.Now())}
}

// lag returns the age of the oldest unwritten record. The caller must hold log.mu.
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

// run writes the waiting records until the Log is closed and the queue is empty, or ctx is done.
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
		if cap(taken) <= 4*batchRecords { // keeps no large slice
			spare = taken[:0]
		}
	}
}

// takeAll returns the queue and replaces it by spare, which must be empty. closed means that no more records will come.
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

// batch returns the number of entries for the next attempt, at least 1.
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

// after returns when the record after the first n of a batch was queued. rest follows the batch. It returns the zero
// time if there is no such record.
func after(batch []*entry, n int, rest []*entry) time.Time {
	if n < len(batch) {
		return batch[n].at
	}
	if len(rest) > 0 {
		return rest[0].at
	}
	return time.Time{}
}

// deliver tries to write a batch until the sink accepts it. rest follows the batch. It returns false if ctx ended
// first.
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
		case <-closing: // try again at once, and start with short pauses
			closing, pause = nil, firstPause
		case <-ctx.Done():
		}
		wait.Stop()
	}
	return false
}

// account counts the entries that an attempt wrote. next is when the first remaining record was queued.
func (s *lane) account(entries []*entry, next time.Time, err error) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	for _, e := range entries {
		s.bytes -= e.size
		e.lanes--
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

// complain logs the first failure of a series, and then one every complainEvery.
func (s *lane) complain(err error) {
	s.failures++
	if s.failures > 1 && time.Since(s.complained) < complainEvery {
		return
	}
	s.complained = time.Now()
	s.log.mu.Lock()
	waiting := s.waits()
	s.log.mu.Unlock()
	s.log.logger.Error("cannot write the audit; its records wait", slog.String("sink", s.name),
		slog.Any("error", err), slog.Int("attempt", s.failures), slog.Int("waiting", waiting))
}

// recovered logs the end of a series of failures.
func (s *lane) recovered() {
	if s.failures > 0 {
		s.log.logger.Info("writing the audit again", slog.String("sink", s.name), slog.Int("failures", s.failures))
	}
	s.failures = 0
}

// giveUp counts and logs the waiting records as lost.
func (s *lane) giveUp() {
	s.log.mu.Lock()
	n, err := s.waits(), s.lastErr
	s.givenUp += uint64(n)
	s.waiting, s.held, s.bytes = nil, 0, 0
	s.log.mu.Unlock()
	s.log.logger.Error("audit records lost; the time to write them is over", slog.String("sink", s.name),
		slog.Int("records", n), slog.Any("error", err))
}

// streamWriter returns a writer to a stream. After an error it counts no line as written.
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

// lineWriter returns a writer to a file. It counts the complete lines, so that a disk that fills up during a batch
// duplicates no line. Before the next attempt it ends a torn line, which readers skip.
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
		// A line is complete without its line break: the next write adds it.
		for n -= lead; whole < len(lines) && n >= len(lines[whole])-1; whole++ {
			n -= len(lines[whole])
		}
		return whole, err
	}
}
