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

// Stream keeps the records of all nodes.
type Stream interface {
	// AppendAll appends lines in their order, each a JSON object without a line break. It must
	// not change or keep them. After an error it may have appended any number of them; the
	// Log then appends all of them again.
	AppendAll(ctx context.Context, lines [][]byte) error
}

// Options configure a [Log]. A Log without Stream and Lines discards everything.
type Options struct {
	// Stream gets every record, some of them twice after a failure. Nil means no stream.
	Stream Stream
	// Lines gets every record as a line of JSON, several lines with one Write. Nil means no
	// lines. The Log closes it.
	Lines     io.WriteCloser
	Arguments Arguments
	// Queue is the number of records that may wait for each sink. Zero means 65536. They may have at most 64 MiB.
	Queue int
	// Logger gets a line for drops and failures. Nil means no logging.
	Logger *slog.Logger
}

const (
	defaultQueue = 65536
	// maxWaiting bounds the records that wait for a sink, in bytes.
	maxWaiting = 64 << 20
	// reportEvery is the shortest time between two log lines about drops.
	reportEvery = time.Second
	// abortGrace is how long Close waits for a write after giving up its records.
	abortGrace = time.Second
)

// Log writes records to its sinks. Its methods may be used concurrently.
type Log struct {
	// Fixed after New.
	arguments Arguments
	queue     int
	logger    *slog.Logger
	stream    *lane // nil without a Stream
	lines     *lane // nil without Lines
	lanes     []*lane
	// alarm, of capacity 1, wakes report after Write has dropped a record. It is never closed.
	alarm   chan struct{}
	closing chan struct{}      // closed by Close
	done    chan struct{}      // closed by run at its end
	abort   context.CancelFunc // ends all attempts, and so the lanes

	closeErr error // of Lines; owned by run until it closes done

	mu       sync.Mutex // guards the following fields, and those of the lanes
	closed   bool
	lostLate uint64 // records after Close
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

// run runs the lanes and the reporter, waits for them and closes Lines. Close waits for it.
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

// Write queues a record. It never blocks or fails: without room in the queue it drops and counts the record. Records of
// one goroutine keep their order. A zero Time becomes now. The caller must not change anything that the record refers
// to.
func (l *Log) Write(r Record) {
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	if !l.arguments.kept() {
		r.Args = nil
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
		default:
		}
	}
}

// report logs dropped records, at most once per reportEvery.
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

// logDrops logs the records that each lane has dropped since its last such line.
func (l *Log) logDrops() {
	for _, lane := range l.lanes {
		l.mu.Lock()
		n, waiting := lane.dropped-lane.reported, lane.waits()
		lane.reported = lane.dropped
		l.mu.Unlock()
		if n > 0 {
			l.logger.Error("audit records dropped; too many wait", slog.String("sink", lane.name), slog.Uint64("records", n),
				slog.Int("waiting", waiting))
		}
	}
}

// Close accepts no more records, writes the waiting ones, closes Lines and returns when all goroutines of the Log have
// ended. If ctx ends first, it gives up the waiting records; its error is then [ErrLost], and [ErrStuck] if a write
// does not return. If a sink keeps failing and ctx has no deadline, Close does not return. A second Close waits like
// the first.
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

// lost returns the error for given-up records, which include all waiting records of a stuck lane.
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

// errNone replaces a missing last error.
var errNone = errors.New("none")

// Stats are counters since New.
type Stats struct {
	Stream, Lines SinkStats // zero for a missing sink
	Late          uint64    // records that were discarded after Close
}

// SinkStats counts the records of one sink.
type SinkStats struct {
	Written uint64
	Dropped uint64        // the queue was full
	GivenUp uint64        // Close ran out of time
	Failed  uint64        // failed attempts to write, each of several records
	Waiting int           // unwritten
	Lag     time.Duration // age of the oldest unwritten record
}

// Stats returns the Log's counters.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Stats{Stream: l.stream.stats(), Lines: l.lines.stats(), Late: l.lostLate}
}
