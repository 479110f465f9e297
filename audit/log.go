package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

// Stream is a place that keeps records for all nodes, such as a store.
type Stream interface {
	// AppendAll appends lines in their order, each a JSON object without a line break.
	// It must not change or keep them. On an error any number of them may have been
	// appended; the Log then appends all of them again.
	AppendAll(ctx context.Context, lines [][]byte) error
}

// Options are what a [Log] writes and where. A Log without a place discards.
type Options struct {
	// Stream gets every record. Nil means none. A record may reach it twice: where an
	// attempt failed after it had been appended.
	Stream Stream
	// Lines gets every record as a line of JSON, several lines with one Write. Nil means
	// none. The Log closes it.
	Lines io.WriteCloser
	// Arguments says what of a call's arguments is written. Zero means nothing.
	Arguments Arguments
	// Queue is how many records may wait for each place. Zero means 65536. Whatever it
	// is, no more than 64 MiB of arguments wait.
	Queue int
	// Logger is told of drops and failures. Nil means nobody is.
	Logger *slog.Logger
}

const (
	defaultQueue = 65536
	// maxWaiting is how many bytes of records may wait for a place.
	maxWaiting = 64 << 20
	// reportEvery is how often drops are logged at most.
	reportEvery = time.Second
	// abortGrace is how long Close waits for a write to return that can no longer matter.
	abortGrace = time.Second
)

// Log takes records and writes them. Its methods may be called by any goroutine.
type Log struct {
	// Fixed after New.
	arguments Arguments
	queue     int
	logger    *slog.Logger
	stream    *lane // nil without a Stream
	lines     *lane // nil without Lines
	lanes     []*lane
	// alarm tells the reporter that a record was dropped; from Write, to report, one
	// signal is enough. Nobody closes it.
	alarm chan struct{}
	// closing is closed by Close: no record is taken any more. done is closed by run,
	// which is over then.
	closing, done chan struct{}
	// abort ends all attempts, and the lanes with them.
	abort context.CancelFunc

	// Owned by the goroutine that closes done, to be read after it.
	closeErr error

	mu     sync.Mutex // guards the following fields, and those of the lanes
	closed bool
	// lostLate counts records that came after Close.
	lostLate uint64
}

// New starts a Log. Whoever starts it closes it.
func New(o Options) *Log {
	l := &Log{
		arguments: o.Arguments, queue: o.Queue, logger: o.Logger,
		alarm: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{}),
	}
	if l.queue <= 0 {
		l.queue = defaultQueue
	}
	if l.logger == nil {
		l.logger = slog.New(slog.DiscardHandler)
	}
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

// Write takes a record. It never blocks and never fails: a record for which there is
// no room is dropped and counted. Records that one goroutine writes keep their order.
// A zero Time becomes now. Nothing that the record refers to may be changed afterwards.
func (l *Log) Write(r Record) {
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	if !l.arguments.kept() {
		r.Args = nil // not to be held while it waits
	}
	e := &entry{record: r, size: len(r.Args) + len(r.Budget) + entrySize}
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
	l.mu.Unlock()
	if dropped {
		select {
		case l.alarm <- struct{}{}:
		default: // the reporter knows
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

// logDrops logs what each place has missed since it last did.
func (l *Log) logDrops() {
	for _, lane := range l.lanes {
		l.mu.Lock()
		n, waiting := lane.dropped-lane.reported, lane.waits()
		lane.reported = lane.dropped
		l.mu.Unlock()
		if n > 0 {
			l.logger.Error("audit records dropped, too many wait", slog.String("sink", lane.name), slog.Uint64("records", n), slog.Int("waiting", waiting))
		}
	}
}

// Close takes no more records, writes those that wait, closes Lines and returns when
// all goroutines of the Log have ended. When ctx ends first it gives up what still
// waits: the error is then [ErrLost], and [ErrStuck] if a write does not return. A ctx
// without a deadline may wait for ever for a place that fails. A second Close waits
// as the first.
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

// lost is the error for what was given up; a place that is stuck has lost what waits.
func (l *Log) lost() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, lane := range l.lanes {
		if n := lane.givenUp + uint64(lane.waits()); n > 0 {
			errs = append(errs, fmt.Errorf("%w: %d for the %s, last failure: %w", ErrLost, n, lane.name, orNone(lane.lastErr)))
		}
	}
	return errors.Join(errs...)
}

// errNone stands for the failure of a place that has had none.
var errNone = errors.New("none")

func orNone(err error) error {
	if err == nil {
		return errNone
	}
	return err
}

// Stats counts since New.
type Stats struct {
	// Stream and Lines are zero where the Log has no such place.
	Stream, Lines SinkStats
	// Late is how many records were written after Close and so reached no place.
	Late uint64
}

// SinkStats counts the records of one place.
type SinkStats struct {
	Written uint64 // the place took them
	Dropped uint64 // there was no room to wait
	GivenUp uint64 // Close ran out of time
	Failed  uint64 // attempts to write that failed, each of some records
	Waiting int    // not written yet
}

// Stats returns what the Log has done.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Stats{Stream: l.stream.stats(), Lines: l.lines.stats(), Late: l.lostLate}
}
