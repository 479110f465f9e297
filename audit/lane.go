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
	// A batch is at most so many records, and bytes before they are encoded.
	batchRecords = 256
	batchBytes   = 256 << 10

	// The pause after a failure begins with the first and doubles up to the last.
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
	// attemptTime bounds one attempt to append to a stream.
	attemptTime = 10 * time.Second
	// complainEvery is how often a failure that goes on is logged.
	complainEvery = 30 * time.Second
)

// entry is one record on its way. Both lanes hold the same one.
type entry struct {
	record Record
	size   int // bytes, roughly

	once sync.Once
	line []byte // with its line break; made once
}

// entrySize is roughly what a record takes without its arguments, in bytes.
const entrySize = 768

// encoded returns the record's line, with its line break.
func (e *entry) encoded(a Arguments) []byte {
	e.once.Do(func() {
		e.line = encode(&e.record, a)
		e.record = Record{} // the line is all that is needed from here on
	})
	return e.line
}

// writer writes lines, each with its line break, and says how many of them are
// written for good: after an error the rest is offered again.
type writer func(ctx context.Context, lines [][]byte) (int, error)

// lane is one place's queue and the goroutine that empties it.
type lane struct {
	// Fixed after newLane.
	log   *Log
	name  string
	write writer
	// wake tells run that something waits; from take, to run, one signal is enough.
	// Nobody closes it.
	wake chan struct{}

	// Owned by run.
	complained time.Time // of the failure that goes on
	failures   int       // in a row

	// Guarded by log.mu.
	waiting  []*entry // in order
	held     int      // what run has taken and not yet written
	bytes    int      // of waiting and held
	written  uint64
	dropped  uint64
	reported uint64 // of dropped, those that were logged
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
	s.bytes += e.size
	select {
	case s.wake <- struct{}{}:
	default: // it has been told
	}
	return true
}

// waits is how many records are not written yet. The caller holds log.mu.
func (s *lane) waits() int { return len(s.waiting) + s.held }

// stats returns the lane's counters. The caller holds log.mu.
func (s *lane) stats() SinkStats {
	if s == nil {
		return SinkStats{}
	}
	return SinkStats{Written: s.written, Dropped: s.dropped, GivenUp: s.givenUp, Failed: s.failed, Waiting: s.waits()}
}

// run writes what waits until the Log is closed and nothing waits, or ctx ends.
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
			if !s.deliver(ctx, rest[:n]) {
				s.giveUp()
				return
			}
			rest = rest[n:]
		}
		clear(taken)
		spare = nil
		if cap(taken) <= 4*batchRecords { // a crowd's slice is not kept for ever
			spare = taken[:0]
		}
	}
}

// takeAll takes what waits and leaves spare, which is empty, in its place. It says
// whether the Log was closed: nothing comes after it.
func (s *lane) takeAll(spare []*entry) (taken []*entry, closed bool) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	taken, s.waiting = s.waiting, spare
	s.held = len(taken)
	return taken, s.log.closed
}

// batch is how many of the entries, at least one, go into the next attempt.
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

// deliver writes a batch, again and again until the place takes it. It says false
// when ctx has ended before.
func (s *lane) deliver(ctx context.Context, entries []*entry) bool {
	lines := make([][]byte, len(entries))
	for i, e := range entries {
		lines[i] = e.encoded(s.log.arguments)
	}
	pause, closing := firstPause, s.log.closing
	for ctx.Err() == nil {
		n, err := s.write(ctx, lines)
		s.account(entries[:n], err)
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
		case <-closing: // once: then it is tried at once, and with short pauses again
			closing, pause = nil, firstPause
		case <-ctx.Done():
		}
		wait.Stop()
	}
	return false
}

// account counts what an attempt wrote.
func (s *lane) account(entries []*entry, err error) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	for _, e := range entries {
		s.bytes -= e.size
	}
	s.held -= len(entries)
	s.written += uint64(len(entries))
	if err != nil {
		s.failed++
		s.lastErr = err
	}
}

// complain logs a failure: the first of a row, and then now and again.
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

// recovered logs that a row of failures is over.
func (s *lane) recovered() {
	if s.failures > 0 {
		s.log.logger.Info("audit is written again", slog.String("sink", s.name), slog.Int("failures", s.failures))
	}
	s.failures = 0
}

// giveUp counts and logs all that waits as lost.
func (s *lane) giveUp() {
	s.log.mu.Lock()
	n, err := s.waits(), s.lastErr
	s.givenUp += uint64(n)
	s.waiting, s.held, s.bytes = nil, 0, 0
	s.log.mu.Unlock()
	s.log.logger.Error("audit records lost, the time to write them is over", slog.String("sink", s.name),
		slog.Int("records", n), slog.Any("error", err))
}

// streamWriter appends to a stream. An attempt counts whole or not at all.
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

// lineWriter writes to a file. Lines that were written whole count, so that a disk
// that is full in the middle of a batch makes no line twice. A line that was torn is
// ended before the next attempt: readers skip it.
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
		// One that lacks its line break alone is whole: it gets that with the next.
		for n -= lead; whole < len(lines) && n >= len(lines[whole])-1; whole++ {
			n -= len(lines[whole])
		}
		return whole, err
	}
}
