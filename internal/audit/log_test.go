package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/testutil"
	"voicegw/registry"
)

var errAway = errors.New("the store is away")

// place is a Stream and a Lines that a test can make fail or hang.
type place struct {
	mu       sync.Mutex // guards the following fields
	calls    []string   // call ids, in order of arrival
	attempts []int      // records of each attempt
	fail     error
	hang     chan struct{} // every attempt waits until it is closed
	stuck    bool          // hanging attempts ignore their context too
	tears    []int         // each write beyond one of these lengths is cut there and fails, once
	data     bytes.Buffer  // the bytes written as lines
	closed   bool
}

func (p *place) set(change func(p *place)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

func (p *place) AppendAll(ctx context.Context, lines [][]byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.attempts = append(p.attempts, len(lines))
	if hang := p.hang; hang != nil {
		gone := ctx.Done()
		if p.stuck {
			gone = nil
		}
		p.mu.Unlock()
		select {
		case <-hang:
		case <-gone:
		}
		p.mu.Lock()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if p.fail != nil {
		return p.fail
	}
	for _, line := range lines {
		if bytes.IndexByte(line, '\n') >= 0 {
			return errors.New("a line break in a line")
		}
		r, err := ParseLine(line)
		if err != nil {
			return err
		}
		p.calls = append(p.calls, r.CallID)
	}
	return nil
}

func (p *place) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fail != nil {
		return 0, p.fail
	}
	if len(p.tears) > 0 && p.data.Len()+len(b) > p.tears[0] {
		room := p.tears[0] - p.data.Len()
		p.tears = p.tears[1:]
		p.data.Write(b[:room])
		return room, errors.New("no space left on device")
	}
	return p.data.Write(b)
}

func (p *place) Close() error {
	p.set(func(p *place) { p.closed = true })
	return nil
}

// seen returns the call ids that a place has.
func (p *place) seen(t *testing.T) []string {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := p.calls
	if _, err := Read(bytes.NewReader(p.data.Bytes()), func(r Record, _ []byte) error {
		calls = append(calls, r.CallID)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return calls
}

// tape stores the logged messages, by text.
type tape struct {
	mu    sync.Mutex
	lines []string
}

func (w *tape) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, string(b))
	return len(b), nil
}

func (w *tape) with(message string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []string
	for _, line := range w.lines {
		if strings.Contains(line, message) {
			found = append(found, line)
		}
	}
	return found
}

func (w *tape) logger() *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

func call(n int) Record {
	return Record{Event: EventTool, ToolID: "kb_search", SessionID: "voice-1", ToolCall: ToolCall{CallID: fmt.Sprint(n)}, OK: true}
}

func calls(from, to int) []string {
	var ids []string
	for i := from; i < to; i++ {
		ids = append(ids, fmt.Sprint(i))
	}
	return ids
}

func mustClose(t *testing.T, l *Log) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testutil.WaitLimit)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		t.Error(err)
	}
}

// same compares with a short message: lists may be long.
func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !cmp.Equal(got, want) {
		t.Errorf("%s holds %d records (%.80v), want %d (%.80v)", what, len(got), got, len(want), want)
	}
}

// TestBothPlacesGetAllInOrder: both places get all records in order and in batches, and Close waits for them.
func TestBothPlacesGetAllInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream, lines := &place{}, &place{}
		l := New(Options{Stream: stream, Lines: lines})
		for i := range 1000 {
			l.Write(call(i))
		}
		mustClose(t, l)
		same(t, "the stream", stream.seen(t), calls(0, 1000))
		same(t, "the file", lines.seen(t), calls(0, 1000))
		if !lines.closed {
			t.Error("the lines were not closed")
		}
		for _, n := range stream.attempts {
			if n > batchRecords {
				t.Errorf("an attempt of %d records, at most %d", n, batchRecords)
			}
		}
		if len(stream.attempts) > 200 {
			t.Errorf("%d attempts for 1000 records: no batches", len(stream.attempts))
		}
		want := SinkStats{Written: 1000}
		if diff := cmp.Diff(Stats{Stream: want, Lines: want}, l.Stats()); diff != "" {
			t.Error(diff)
		}
		l.Write(call(1000))
		if got := l.Stats().Late; got != 1 {
			t.Errorf("%d late records, want 1", got)
		}
		mustClose(t, l)
	})
}

// TestManyWriters: the order of each writer is preserved and no record is lost.
func TestManyWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream, lines := &place{}, &place{}
		l := New(Options{Stream: stream, Lines: lines})
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := range 200 {
					l.Write(call(w*1000 + i))
				}
			})
		}
		wg.Wait()
		mustClose(t, l)
		for name, p := range map[string]*place{"stream": stream, "lines": lines} {
			next := map[int]int{}
			got := p.seen(t)
			for _, id := range got {
				var n int
				if _, err := fmt.Sscan(id, &n); err != nil {
					t.Fatal(err)
				}
				if n%1000 != next[n/1000] {
					t.Fatalf("%s: writer %d: record %d where %d was due", name, n/1000, n%1000, next[n/1000])
				}
				next[n/1000]++
			}
			if len(got) != 1600 {
				t.Errorf("%s has %d records, want 1600", name, len(got))
			}
		}
	})
}

// TestPassingFailureLosesNothing: a temporary failure of one place loses no record, and the other place is not affected.
func TestPassingFailureLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream, lines, logged := &place{fail: errAway}, &place{}, &tape{}
		l := New(Options{Stream: stream, Lines: lines, Logger: logged.logger()})
		began := time.Now()
		for i := range 600 {
			l.Write(call(i))
		}
		for time.Since(began) < 10*time.Minute {
			<-time.After(time.Minute)
		}
		same(t, "the file", lines.seen(t), calls(0, 600))
		if got := l.Stats().Stream; got.Written != 0 || got.Waiting != 600 || got.Failed < 100 || got.Failed > 150 {
			t.Errorf("after ten minutes: %+v; want 600 waiting and an attempt every 5 s", got)
		}
		stream.set(func(p *place) { p.fail = nil })
		<-time.After(lastPause + time.Second)
		same(t, "the stream", stream.seen(t), calls(0, 600))
		l.Write(call(600))
		synctest.Wait()
		same(t, "the stream", stream.seen(t), calls(0, 601))
		if n := len(logged.with("cannot write the audit")); n < 10 || n > 25 {
			t.Errorf("the failure was logged %d times in ten minutes, want one at first and then every 30 s", n)
		}
		if lines := logged.with("writing the audit again"); len(lines) != 1 || !strings.Contains(lines[0], "sink=stream") {
			t.Errorf("the recovery was logged as %q", lines)
		}
		mustClose(t, l)
	})
}

// TestHangingPlaceDelaysNoOther: a hanging place delays neither the writer of records nor the other place, and its
// attempt has a timeout.
func TestHangingPlaceDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream, lines := &place{hang: make(chan struct{})}, &place{}
		l := New(Options{Stream: stream, Lines: lines})
		began := time.Now()
		for i := range 10 {
			l.Write(call(i))
		}
		synctest.Wait()
		same(t, "the file", lines.seen(t), calls(0, 10))
		if d := time.Since(began); d != 0 {
			t.Errorf("it took %v", d)
		}
		<-time.After(attemptTime + time.Second)
		if got := l.Stats().Stream; got.Failed == 0 {
			t.Error("the attempt had no timeout")
		}
		stream.set(func(p *place) { close(p.hang); p.hang = nil })
		mustClose(t, l)
		same(t, "the stream", stream.seen(t), calls(0, 10))
	})
}

// TestLag: the age of the oldest record that a place lacks, over batches and failures.
func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream, lines := &place{hang: make(chan struct{})}, &place{}
		l := New(Options{Stream: stream, Lines: lines})
		is := func(want time.Duration) {
			t.Helper()
			synctest.Wait()
			if got := l.Stats(); got.Stream.Lag != want || got.Lines.Lag != 0 {
				t.Errorf("the lag is %v and %v, want %v and none", got.Stream.Lag, got.Lines.Lag, want)
			}
		}
		is(0)
		l.Write(call(0))
		<-time.After(2 * time.Second)
		is(2 * time.Second)
		for i := range batchRecords {
			l.Write(call(i))
		}
		<-time.After(time.Second)
		is(3 * time.Second)
		for i := range batchRecords {
			l.Write(call(i)) // a second younger than the batch before it
		}
		old := stream.hang
		stream.set(func(p *place) { close(old); p.hang = make(chan struct{}) }) // the first is written, and its successors wait
		is(time.Second)
		<-time.After(time.Second)
		is(2 * time.Second)
		old = stream.hang
		l.Write(call(0))
		stream.set(func(p *place) { close(old); p.hang = make(chan struct{}) }) // a batch is written
		is(time.Second)
		old = stream.hang
		stream.set(func(p *place) { close(old); p.hang = nil })
		is(0)
		mustClose(t, l)
	})
}

// TestFullQueueDropsTheNewest: a full queue drops the newest record, counts it and logs it at most once a second.
func TestFullQueueDropsTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream, lines, logged := &place{fail: errAway}, &place{}, &tape{}
		l := New(Options{Stream: stream, Lines: lines, Queue: 5, Logger: logged.logger()})
		for i := range 50 {
			l.Write(call(i))
			synctest.Wait() // the file has all records
			<-time.After(100 * time.Millisecond)
		}
		if got := l.Stats().Stream; got.Dropped != 45 || got.Waiting != 5 {
			t.Errorf("%+v, want 45 dropped and 5 waiting", got)
		}
		if got := l.Stats().Lines; got.Dropped != 0 || got.Written != 50 {
			t.Errorf("the file, which did not fail: %+v", got)
		}
		stream.set(func(p *place) { p.fail = nil })
		mustClose(t, l)
		same(t, "the stream", stream.seen(t), calls(0, 5))
		drops := logged.with("audit records dropped")
		if len(drops) < 4 || len(drops) > 7 {
			t.Errorf("drops of 5 s were logged %d times: %q", len(drops), drops)
		}
		total := 0
		for _, line := range drops {
			var n int
			_, rest, _ := strings.Cut(line, "records=")
			if _, err := fmt.Sscan(rest, &n); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			total += n
		}
		if total != 45 {
			t.Errorf("%d drops were logged, want 45", total)
		}
	})
}

// TestWaitingBytesAreBounded: the waiting bytes are limited, whatever the number of records.
func TestWaitingBytesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream := &place{fail: errAway}
		l := New(Options{Stream: stream, Arguments: ArgumentsFull})
		big := bytes.Repeat([]byte{' '}, 1<<20)
		for i := range 200 {
			r := call(i)
			r.Args = big
			l.Write(r)
		}
		if got := l.Stats().Stream; got.Waiting > 64 || got.Waiting < 32 || got.Dropped != uint64(200-got.Waiting) {
			t.Errorf("%+v, want at most 64 MiB of records of 1 MiB waiting", got)
		}
		stream.set(func(p *place) { p.fail = nil })
		mustClose(t, l)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.stream.bytes != 0 {
			t.Errorf("%d bytes wait without a record", l.stream.bytes)
		}
	})
}

// TestCloseGivesUp: Close returns after its time and reports the lost records.
func TestCloseGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream, lines, logged := &place{fail: errAway}, &place{}, &tape{}
		l := New(Options{Stream: stream, Lines: lines, Logger: logged.logger()})
		for i := range 7 {
			l.Write(call(i))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		err := l.Close(ctx)
		if !errors.Is(err, ErrLost) || !errors.Is(err, errAway) || !strings.Contains(err.Error(), "7 for the stream") {
			t.Errorf("error %v, want ErrLost with the number and the cause", err)
		}
		if got := l.Stats(); got.Stream.GivenUp != 7 || got.Lines.Written != 7 {
			t.Errorf("%+v", got)
		}
		if len(logged.with("audit records lost")) != 1 {
			t.Errorf("logged: %q", logged.lines)
		}
		if !lines.closed {
			t.Error("the lines were not closed")
		}
	})
}

// TestCloseTriesAtOnce: the pause after a failure does not delay Close.
func TestCloseTriesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream := &place{fail: errAway}
		l := New(Options{Stream: stream})
		l.Write(call(0))
		<-time.After(time.Minute) // the pauses are long now
		stream.set(func(p *place) { p.fail = nil })
		began := time.Now()
		mustClose(t, l)
		if d := time.Since(began); d != 0 {
			t.Errorf("Close took %v", d)
		}
		same(t, "the stream", stream.seen(t), calls(0, 1))
	})
}

// TestCloseDoesNotWaitForAStuckWrite: a stuck write does not delay Close.
func TestCloseDoesNotWaitForAStuckWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream := &place{hang: make(chan struct{}), stuck: true}
		l := New(Options{Stream: stream})
		l.Write(call(0))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Close(ctx); !errors.Is(err, ErrStuck) || !errors.Is(err, ErrLost) {
			t.Errorf("error %v, want ErrStuck and ErrLost", err)
		}
		close(stream.hang)
		<-l.done
	})
}

// TestTornWriteRepeatsNoLine: the disk is full in the middle of a batch.
func TestTornWriteRepeatsNoLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line, err := marshal(Record{Event: EventTool, ToolID: "kb_search", SessionID: "voice-1", ToolCall: ToolCall{CallID: "0"}, OK: true, Time: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		n := len(line)
		for _, c := range []struct {
			tears   []int // bytes after the first line
			foreign int   // lines that remain torn
		}{
			{[]int{1}, 1},
			{[]int{n - 1}, 0}, // a line that lacks only its break is whole
			{[]int{n}, 0},
			{[]int{n + 1}, 1},
			{[]int{2*n + 10}, 1},
			{[]int{n + 1, n + 1 + n - 1}, 2}, // again, before the repeated line is whole
			{[]int{n + 1, n + 1 + n}, 1},     // again, and only its break is missing
		} {
			lines := &place{fail: errAway}
			l := New(Options{Lines: lines})
			l.Write(call(0))
			synctest.Wait() // it is written alone, so that the others wait for one batch
			for i := 1; i < 6; i++ {
				l.Write(call(i))
			}
			lines.set(func(p *place) {
				p.fail = nil
				for _, tear := range c.tears {
					p.tears = append(p.tears, n+tear)
				}
			})
			<-time.After(time.Second)
			l.Write(call(6))
			mustClose(t, l)
			same(t, fmt.Sprintf("torn after %d bytes, the file", c.tears), lines.seen(t), calls(0, 7))
			report, err := Read(bytes.NewReader(lines.data.Bytes()), func(Record, []byte) error { return nil })
			if err != nil || report.Torn || report.Foreign != c.foreign {
				t.Errorf("torn after %d bytes: %+v, %v, want %d foreign lines", c.tears, report, err, c.foreign)
			}
			if len(lines.tears) > 0 {
				t.Errorf("torn after %d bytes: %d were not", c.tears, len(lines.tears))
			}
		}
	})
}

// TestUnwrittenArgumentsAreNotHeld: arguments that are not written do not wait either.
func TestUnwrittenArgumentsAreNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, a := range []Arguments{"", ArgumentsNone, "everything"} {
			lines := &place{}
			l := New(Options{Lines: lines, Arguments: a})
			l.Write(Record{Event: EventTool, SessionID: "s", Args: []byte(`{"query":"hush"}`), Budget: []byte(`{"total":{"used":1,"limit":3}}`),
				Clamped: map[string]registry.Clamped{"top_k": {Requested: "10", Applied: 3}}})
			mustClose(t, l)
			if text := lines.data.String(); strings.Contains(text, "hush") || strings.Contains(text, "args") || !strings.Contains(text, `"used":1`) {
				t.Errorf("arguments %q: %s", a, text)
			}
		}
	})
}

// TestArgumentsDoNotWait: arguments do not wait if they will not be written.
func TestArgumentsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Stream: &place{fail: errAway}})
		r := call(0)
		r.Args = make([]byte, 1<<20)
		l.Write(r)
		l.mu.Lock()
		waiting := l.stream.bytes
		l.mu.Unlock()
		if waiting > 1<<10 {
			t.Errorf("%d bytes wait", waiting)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Close(ctx); !errors.Is(err, ErrLost) {
			t.Error(err)
		}
	})
}

// TestNoPlace: a Log without a place takes records and is closed like any other.
func TestNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{})
		l.Write(call(0))
		mustClose(t, l)
		if diff := cmp.Diff(Stats{}, l.Stats()); diff != "" {
			t.Error(diff)
		}
	})
}

// BenchmarkWrite measures the cost of a record for its caller.
func BenchmarkWrite(b *testing.B) {
	for _, a := range []Arguments{ArgumentsNone, ArgumentsRedacted} {
		b.Run(string(a), func(b *testing.B) {
			l := New(Options{Lines: Stdout(discard{}), Arguments: a})
			r := fullRecord()
			b.ReportAllocs()
			for n := 1; b.Loop(); n++ {
				l.Write(r)
				if n%10_000 == 0 { // a record that is dropped costs less
					b.StopTimer()
					for l.Stats().Lines.Waiting > 0 {
						runtime.Gosched()
					}
					b.StartTimer()
				}
			}
			b.StopTimer()
			if n := l.Stats().Lines.Dropped; n > 0 {
				b.Errorf("%d records were dropped", n)
			}
			if err := l.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
		})
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// TestWritten: a record's channel is closed once each destination has the record, and not while it waits for one. A
// dropped record waits for nothing.
func TestWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream, lines := &place{hang: make(chan struct{})}, &place{}
		l := New(Options{Stream: stream, Lines: lines, Queue: 1})
		write := func(call string) (written func() bool) {
			r := Record{Event: EventTool, Mode: "voice", ToolCall: ToolCall{CallID: call}, Written: make(chan struct{})}
			l.Write(r)
			synctest.Wait()
			return func() bool {
				select {
				case <-r.Written:
					return true
				default:
					return false
				}
			}
		}
		first := write("c1")
		if lines.data.Len() == 0 || first() {
			t.Errorf("the file has %q, and the record counts as written: %v", lines.data.String(), first())
		}
		write("c2") // the queue of the stream is full
		if dropped := write("c3"); !dropped() {
			t.Error("a record that the stream has dropped and the file has written counts as waiting")
		}
		close(stream.hang)
		synctest.Wait()
		if !first() {
			t.Error("the record counts as waiting although both destinations have it")
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if write("c4")() {
			t.Error("a record after Close counts as written")
		}
	})
}
