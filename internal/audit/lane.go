package audit

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"slices"
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
	attemptTime   = 10 * time.Second
	complainEvery = 30 * time.Second
)

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

func (e *entry) encoded(a Arguments) []byte {
	e.once.Do(func() {
		e.line = encode(&e.record, a)
		e.record = Record{} // to free it: only the line is needed now
	})
	return e.line
}

// writer writes lines and returns the number written. After an error its caller tries the others again.
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
	waiting  []*entry // in order
	bytes    int      // of waiting
	counts   SinkStats
	reported uint64 // of counts.Dropped, those in the log
	lastErr  error
}

func newLane(l *Log, name string, w writer) *lane {
	return &lane{log: l, name: name, write: w, wake: make(chan struct{}, 1)}
}

// take queues an entry, or counts it as dropped. The caller must hold log.mu.
func (s *lane) take(e *entry) bool {
	if len(s.waiting) >= s.log.o.Queue || s.bytes+e.size > maxWaiting {
		s.counts.Dropped++
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

// stats returns the lane's counters. The caller must hold log.mu.
func (s *lane) stats() SinkStats {
	if s == nil {
		return SinkStats{}
	}
	is := s.counts
	if is.Waiting = len(s.waiting); is.Waiting > 0 {
		is.Lag = time.Since(s.waiting[0].at)
	}
	return is
}

// run writes the waiting records until the Log is closed and none waits, or ctx is done.
func (s *lane) run(ctx context.Context) {
	for {
		entries, closed := s.next()
		switch {
		case len(entries) > 0:
			if !s.deliver(ctx, entries) {
				s.giveUp()
				return
			}
		case closed:
			return
		default:
			select {
			case <-s.wake:
			case <-s.log.closing:
			}
		}
	}
}

// next returns the next batch, which keeps waiting. closed means that no more records will come.
func (s *lane) next() (entries []*entry, closed bool) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	size := 0
	for i, e := range s.waiting {
		if size += e.size; i > 0 && (i == batchRecords || size > batchBytes) {
			break
		}
		entries = append(entries, e)
	}
	return entries, s.log.closed
}

// deliver tries to write a batch until the sink accepts it. It returns false if ctx ended first.
func (s *lane) deliver(ctx context.Context, entries []*entry) bool {
	lines := make([][]byte, len(entries))
	for i, e := range entries {
		lines[i] = e.encoded(s.log.o.Arguments)
	}
	pause, closing := firstPause, s.log.closing
	for ctx.Err() == nil {
		n, err := s.write(ctx, lines)
		s.account(n, err)
		if err == nil {
			s.recovered()
			return true
		}
		s.complain(err)
		lines = lines[n:]
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

// account removes the first n records, which an attempt wrote.
func (s *lane) account(n int, err error) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	for _, e := range s.waiting[:n] {
		s.bytes -= e.size
		e.lanes--
		e.settle()
	}
	s.waiting = slices.Delete(s.waiting, 0, n)
	s.counts.Written += uint64(n)
	if err != nil {
		s.counts.Failed++
		s.lastErr = err
	}
}

func (s *lane) complain(err error) {
	s.failures++
	if s.failures > 1 && time.Since(s.complained) < complainEvery {
		return
	}
	s.complained = time.Now()
	s.log.mu.Lock()
	waiting := len(s.waiting)
	s.log.mu.Unlock()
	s.log.o.Logger.Error("cannot write the audit; its records wait", slog.String("sink", s.name),
		slog.Any("error", err), slog.Int("attempt", s.failures), slog.Int("waiting", waiting))
}

func (s *lane) recovered() {
	if s.failures > 0 {
		s.log.o.Logger.Info("writing the audit again", slog.String("sink", s.name), slog.Int("failures", s.failures))
	}
	s.failures = 0
}

func (s *lane) giveUp() {
	s.log.mu.Lock()
	n, err := len(s.waiting), s.lastErr
	s.counts.GivenUp += uint64(n)
	s.waiting, s.bytes = nil, 0
	s.log.mu.Unlock()
	s.log.o.Logger.Error("audit records lost: they could not be written before the shutdown", slog.String("sink", s.name),
		slog.Int("records", n), slog.Any("error", err))
}

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

// lineWriter counts the complete lines, so that a full disk duplicates none. It ends a torn line, which readers skip.
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
