// Package audit records the actions of tools: one JSON object for each call and related event, without transcripts or
// audio, and arguments only as configured. A [Log] has a goroutine and a bounded queue for each sink, so that none
// delays another or a caller; it drops and counts the newest records beyond it, and retries after failures. A [File]
// rotates JSON lines; [Read], [ReadFiles] and [Follow] read them, even while a File writes.
package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Stream keeps the records of all nodes.
type Stream interface {
	// AppendAll appends JSON objects in order, without keeping them. After an error it gets all of them again.
	AppendAll(ctx context.Context, lines [][]byte) error
}

// Options configure a [Log]. A Log without Stream and Lines discards everything.
type Options struct {
	Stream Stream
	// Lines gets lines of JSON, several with one Write. Nil means none. The Log closes it.
	Lines     io.WriteCloser
	Arguments Arguments
	// Queue is the number of records that may wait for each sink. Zero means 65536. They may have at most 64 MiB.
	Queue  int
	Logger *slog.Logger
}

const (
	defaultQueue = 65536
	// maxWaiting bounds the records that wait for a sink, in bytes.
	maxWaiting  = 64 << 20
	reportEvery = time.Second
	abortGrace  = time.Second
)

// Log writes records to its sinks. Its methods may be used concurrently.
type Log struct {
	// Fixed after New.
	o      Options
	stream *lane // nil without a Stream
	lines  *lane // nil without Lines
	lanes  []*lane
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
	o.Queue = cmp.Or(o.Queue, defaultQueue)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	l := &Log{o: o, alarm: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{})}
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
	go l.run(ctx)
	return l
}

// run runs the lanes and the reporter, waits for them and closes Lines. Close waits for it.
func (l *Log) run(ctx context.Context) {
	defer close(l.done)
	defer l.abort()
	var wg sync.WaitGroup
	for _, lane := range l.lanes {
		wg.Go(func() { lane.run(ctx) })
	}
	wg.Go(l.report)
	wg.Wait()
	if l.o.Lines != nil {
		l.closeErr = l.o.Lines.Close()
	}
}

// Write queues a record. It never blocks or fails: without room it drops and counts it. Records of one goroutine keep
// their order. A zero Time becomes now. The record's references must not change.
func (l *Log) Write(r Record) {
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	if !l.o.Arguments.kept() {
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

func (l *Log) logDrops() {
	for _, lane := range l.lanes {
		l.mu.Lock()
		n, waiting := lane.counts.Dropped-lane.reported, len(lane.waiting)
		lane.reported = lane.counts.Dropped
		l.mu.Unlock()
		if n > 0 {
			l.o.Logger.Error("audit records dropped; too many wait", slog.String("sink", lane.name), slog.Uint64("records", n),
				slog.Int("waiting", waiting))
		}
	}
}

// Close writes the waiting records, closes Lines and returns when all goroutines have ended. If ctx ends first, it
// gives up the rest; the error is then [ErrLost], and [ErrStuck] if a write does not return. A second Close waits too.
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

func (l *Log) lost() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, lane := range l.lanes {
		if n := lane.counts.GivenUp + uint64(len(lane.waiting)); n > 0 {
			errs = append(errs, fmt.Errorf("%w: %d for the %s, last failure: %w", ErrLost, n, lane.name, cmp.Or(lane.lastErr, errNone)))
		}
	}
	return errors.Join(errs...)
}

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

var (
	// ErrLost means that Close gave up records, because their sink did not accept them in time.
	ErrLost = errors.New("audit records are lost")
	// ErrStuck means that a write had not returned when the context of Close ended.
	ErrStuck = errors.New("an audit write hangs")
	// ErrForeign means that a line is not a record of this package.
	ErrForeign = errors.New("not an audit record")
	// ErrPath means that the path of the audit file is unusable.
	ErrPath = errors.New("cannot use the audit file")
)

// Unwritten holds records until a [Log] has written them: those lost if the process died. Safe for concurrent use.
type Unwritten struct {
	mu      sync.Mutex // guards the following field
	records []*Record
}

// Add sets r.Written and returns the number held. The caller passes a copy of *r to [Log.Write], whose queue bounds it.
func (u *Unwritten) Add(r *Record) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	r.Written = make(chan struct{})
	u.records = append(u.unwritten(), r)
	return len(u.records)
}

// Records returns the records that may not be written yet, oldest first.
func (u *Unwritten) Records() []*Record {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.unwritten())
}

// Wait waits until the records added so far are written, at most for limit. It returns the number of unwritten records.
func (u *Unwritten) Wait(limit time.Duration) int {
	waits := u.Records()
	late := time.NewTimer(limit)
	defer late.Stop()
	for i, r := range waits {
		select {
		case <-r.Written:
		case <-late.C:
			return len(waits) - i
		}
	}
	return 0
}

// unwritten drops the written records and returns the rest. The caller must hold mu.
func (u *Unwritten) unwritten() []*Record {
	u.records = slices.DeleteFunc(u.records, func(r *Record) bool {
		select {
		case <-r.Written:
			return true
		default:
			return false
		}
	})
	return u.records
}
