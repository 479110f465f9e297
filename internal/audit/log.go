package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

// Stream keeps records for all nodes, as a store does.
type Stream interface {
	// AppendAll appends lines in their order, each a JSON object without a line break. It must
	// not change or keep them. After an error any number of them may have been appended; the
	// Log then appends all of them again.
	AppendAll(ctx context.Context, lines [][]byte) error
}

// Options say what a [Log] writes and where. A Log without a place discards everything.
type Options struct {
	// Stream gets every record. Nil means no stream. A record may reach it twice, if an
	// attempt failed after it had been appended.
	Stream Stream
	// Lines gets every record as a line of JSON, several lines with one Write. Nil means no
	// lines. The Log closes it.
	Lines io.WriteCloser
	// Arguments says how much of a call's arguments is written. Zero means nothing.
	Arguments Arguments
	// Queue is how many records may wait for each place. Zero means 65536. In any case at most
	// 64 MiB of arguments wait.
	Queue int
	// Logger gets a line for drops and failures. Nil means no logging.
	Logger *slog.Logger
}

const (
	defaultQueue = 65536
	// maxWaiting bounds the records that wait for a place, in bytes.
	maxWaiting = 64 << 20
	// reportEvery is the shortest time between two log lines about drops.
	reportEvery = time.Second
	// abortGrace is how long Close waits for a write whose result no longer matters.
	abortGrace = time.Second
)

// Log accepts records and writes them. Its methods may be used concurrently.
type Log struct {
	// Fixed after New.
	arguments Arguments
	queue     int
	logger    *slog.Logger
	stream    *lane // nil without a Stream
	lines     *lane // nil without Lines
	lanes     []*lane
	// alarm tells the reporter that a record was dropped; from Write, to report, one signal is
	// enough. It is never closed.
	alarm chan struct{}
	// closing is closed by Close: no record is accepted any more. done is closed by run when it
	// returns.
	closing, done chan struct{}
	// abort ends all attempts, and with them the lanes.
	abort context.CancelFunc

	// Owned by the goroutine that closes done, and read after that.
	closeErr error

	mu     sync.Mutex // guards the following fields, and those of the lanes
	closed bool
	// lostLate counts records that came after Close.
	lostLate uint64
}

// New starts a Log. The caller must close it.
func New(o Options) *Log {
	l := &Log{
		arguments: o.Arguments, queue: o.Queue, logger: o.Logger,
		alarm: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{}),
	}
	if l.queue <= 0 {
		l.queue = defaultQueue
	}
	l.logger = cmp.Or(l.logger, slog.New(slog.DiscardHandler))
	if o.Stream != nil {
		l.stream = newLane(l, "stream", streamWriter(o.Stream))
		l.lanes = append(l.lanes, l.stream)
	}
	if o.Lines != nil {
		l.lines = newLane(l, "lines", lineWriter(o.Lines))
		l.lanes = append(l.lanes, l.lines)
	}
	ctx, abort := context.WithCancel(context.Background())
	l.abort = abort
	go l.run(ctx, o.Lines)
	return l
}

// run is the Log's goroutine: it starts the lanes and the reporter, waits for them
// and closes the lines. Close waits for it.
func (l *Log) run(ctx context.Context, lines io.Closer) {
	defer close(l.done)
	defer l.abort()
	var wg sync.WaitGroup
	for _, lane := range l.lanes {
		wg.Go(func() { lane.run(ctx) })
	}
	wg.Go(l.report)
	wg.Wait()
	if lines != nil {
		l.closeErr = lines.Close()
	}
}

// Write accepts a record. It never blocks and never fails: a record without room in the queue is
// dropped and counted. Records of one goroutine keep their order. A zero Time becomes now. The
// caller must not change anything that the record refers to afterwards.
func (l *Log) Write(r Record) {
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	if !l.arguments.kept() {
		r.Args = nil // rendered before the lock is taken
	}
	e := &entry{record: r, size: len(r.Args) + len(r.Budget) + entrySize, at: time.Now(), written: r.Written}
	dropped := false
	l.mu.Lock()
	if l.closed {
		l.lostLate++
		l.mu.Unlock()
		return
	}
	for _, lane := range l.lanes {
		if !lane.take(e) {
			dropped = true
		}
	}
	e.settle()
	l.mu.Unlock()
	if dropped {
		select {
		case l.alarm <- struct{}{}:
		default: // the reporter knows already
		}
	}
}

// report logs what was dropped, at most once a second.
func (l *Log) report() {
	for {
		select {
		case <-l.alarm:
		case <-l.closing:
			l.logDrops()
			return
		}
		l.logDrops()
		select {
		case <-time.After(reportEvery):
		case <-l.closing:
		}
	}
}

// logDrops logs what each place has missed since the last such line.
func (l *Log) logDrops() {
	for _, lane := range l.lanes {
		l.mu.Lock()
		n, waiting := lane.dropped-lane.reported, lane.waits()
		lane.reported = lane.dropped
		l.mu.Unlock()
		if n > 0 {
			l.logger.Error("audit records dropped, too many wait", slog.String("sink", lane.name), slog.Uint64("records", n),
				slog.Int("waiting", waiting))
		}
	}
}

// Close accepts no more records, writes those that wait, closes Lines and returns when all
// goroutines of the Log have ended. If ctx ends first, the waiting records are given up: the
// error is then [ErrLost], and [ErrStuck] if a write does not return. With a ctx without a
// deadline Close may wait for ever for a place that fails. A second Close waits as the first.
func (l *Log) Close(ctx context.Context) error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.closing)
	}
	l.mu.Unlock()
	var stuck error
	select {
	case <-l.done:
	case <-ctx.Done():
		l.abort()
		grace := time.NewTimer(abortGrace)
		defer grace.Stop()
		select {
		case <-l.done:
		case <-grace.C:
			stuck = ErrStuck
		}
	}
	err := errors.Join(stuck, l.lost())
	if stuck == nil {
		err = errors.Join(err, l.closeErr)
	}
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// lost is the error for records that were given up; a stuck place has lost all that wait.
func (l *Log) lost() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, lane := range l.lanes {
		if n := lane.givenUp + uint64(lane.waits()); n > 0 {
			errs = append(errs, fmt.Errorf("%w: %d for the %s, last failure: %w", ErrLost, n, lane.name, cmp.Or(lane.lastErr, errNone)))
		}
	}
	return errors.Join(errs...)
}

// errNone stands for "no failure yet" in a place's last error.
var errNone = errors.New("none")

// Stats are counters since New.
type Stats struct {
	// Stream and Lines are zero if the Log has no such place.
	Stream, Lines SinkStats
	// Late is how many records came after Close and so reached no place.
	Late uint64
}

// SinkStats counts the records of one place.
type SinkStats struct {
	Written uint64 // the place accepted them
	Dropped uint64 // the queue was full
	GivenUp uint64 // Close ran out of time
	Failed  uint64 // failed attempts to write, each of several records
	Waiting int    // not written yet
	// Lag is how long the oldest of those has waited.
	Lag time.Duration
}

// Stats returns the Log's counters.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Stats{Stream: l.stream.stats(), Lines: l.lines.stats(), Late: l.lostLate}
}
