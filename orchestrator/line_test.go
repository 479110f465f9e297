package orchestrator

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// ear drives a random line and compares its reports with the truth.
type ear struct {
	t     *testing.T
	rng   *rand.Rand
	line  line
	clock PlayClock
	now   time.Time
	sent  []time.Duration // of each item so far
	heard []int64         // the last reported positions
	log   []string
}

func (e *ear) id(i int) string { return fmt.Sprint("item", i) }

func (e *ear) do(format string, args ...any) {
	e.log = append(e.log, fmt.Sprintf("%d ", e.now.Sub(epoch).Milliseconds())+fmt.Sprintf(format, args...))
}

func (e *ear) fail(format string, args ...any) {
	e.t.Helper()
	e.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(e.log, "\n"))
}

// act performs one event on the line.
func (e *ear) act(reports bool) {
	e.now = e.now.Add(time.Duration(e.rng.IntN(700)) * time.Millisecond)
	last := len(e.sent) - 1
	switch n := e.rng.IntN(10); {
	case last < 0 || n < 2:
		e.line.begin(e.id(last+1), 1, e.now)
		e.sent, e.heard = append(e.sent, 0), append(e.heard, 0)
		e.do("begin %d", last+1)
	case n < 6:
		more := time.Duration(e.rng.IntN(3000)) * time.Millisecond
		e.sent[last] += more
		e.line.send(AudioSent{Item: e.id(last), Sent: e.sent[last], Until: e.clock.Add(e.now, more)})
		e.do("send %s of %d", more, last)
	case n < 8:
		i := e.rng.IntN(last + 1)
		e.line.end(e.id(i), e.sent[i].Milliseconds()+int64(e.rng.IntN(2)*e.rng.IntN(900)))
		e.do("end %d", i)
	case reports:
		in := Played{Item: e.id(e.rng.IntN(last + 2)), MS: int64(e.rng.IntN(9000)) - 900, Done: e.rng.IntN(4) == 0}
		e.line.report(in, e.now)
		e.do("report %+v", in)
	}
}

// look checks the line now, and returns the total heard.
func (e *ear) look() (total int64) {
	e.t.Helper()
	for i, it := range e.line.items {
		ms := e.line.heard(i, e.now)
		if ms < 0 || ms > it.sent.Milliseconds() {
			e.fail("%s: %d ms heard, %s sent", it.id, ms, it.sent)
		}
		if i > 0 && ms > 0 {
			if before := e.line.items[i-1]; e.line.heard(i-1, e.now) < before.sent.Milliseconds() && !before.done {
				e.fail("%s is heard before %s is over", it.id, before.id)
			}
		}
		if e.line.over(i, e.now) && !it.complete() {
			e.fail("%s is over, and more of it is to be sent", it.id)
		}
		total += ms
	}
	return total
}

// TestLineOrder: items are heard one after another and never beyond the audio sent, and the heard length only
// grows: by the clock without reports, by reports if everything else is idle.
func TestLineOrder(t *testing.T) {
	for seed := range uint64(400) {
		e := &ear{t: t, rng: rand.New(rand.NewPCG(seed, 7)), now: epoch}
		reports := seed%2 == 1
		for range 60 {
			before := e.line.clone()
			e.act(reports)
			e.look()
			for i, it := range e.line.items {
				var n int
				fmt.Sscanf(it.id, "item%d", &n)
				ms := e.line.heard(i, e.now)
				old := before.index(it.id)
				byReport := !it.reportedAt.IsZero() && old >= 0 && !before.items[old].reportedAt.IsZero()
				if ms < e.heard[n] && (!reports || byReport) {
					e.fail("seed %d: %s: %d ms were heard, and now %d", seed, it.id, e.heard[n], ms)
				}
				e.heard[n] = ms
			}
			if e.rng.IntN(5) == 0 {
				e.line.settle(e.now)
			}
		}
		// When all is sent, the line empties in the end, whatever was reported.
		for i := range e.sent {
			e.line.end(e.id(i), 0)
			for j := range e.line.items {
				e.line.items[j].audioMS = min(e.line.items[j].audioMS, e.line.items[j].sent.Milliseconds())
			}
		}
		by, patience := e.line.emptyBy(), e.line.patience()
		if e.now.After(by) {
			by = e.now
		}
		if e.now = by.Add(patience); e.line.audible(e.now) {
			e.fail("seed %d: an item still plays %s after the end", seed, patience)
		}
		if e.line.settle(e.now); len(e.line.items) > 0 {
			e.fail("seed %d: %d items never end", seed, len(e.line.items))
		}
	}
}

// TestPlayClock: pieces play one after another, and a late piece begins when it arrives.
func TestPlayClock(t *testing.T) {
	var c PlayClock
	at := func(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }
	for i, tc := range []struct{ at, ms, want int }{{0, 500, 500}, {100, 500, 1000}, {3000, 200, 3200}, {3200, 100, 3300}} {
		if got := c.Add(at(tc.at), time.Duration(tc.ms)*time.Millisecond); !got.Equal(at(tc.want)) {
			t.Errorf("piece %d is played by %s, want %d ms", i, got.Sub(epoch), tc.want)
		}
	}
	c.Cut(at(5000))
	c.Cut(at(3250))
	if got := c.Add(at(3260), time.Millisecond); !got.Equal(at(3261)) {
		t.Errorf("after a flush the next piece is played by %s", got.Sub(epoch))
	}
}

// TestItemIsSpokenOnce: an ended or flushed item does not begin again, and an item beyond the limit is an error to
// the client.
func TestItemIsSpokenOnce(t *testing.T) {
	s := NewState(capsDeaf, NewRules(Policy{}), toolbox(), testMark, epoch)
	var actions []Action
	do := func(in Input) {
		var now []Action
		s, now = Step(s, epoch.Add(time.Second), in)
		actions = append(actions, now...)
	}
	do(Began{})
	for i := range maxItems + 2 {
		do(AudioBegan{Item: fmt.Sprint("item", i)})
	}
	do(AudioBegan{Item: "item1"})
	opened, failed := 0, 0
	for _, a := range actions {
		switch bare(a).(type) {
		case OpenItem:
			opened++
		case Failed:
			failed++
		}
	}
	if opened != maxItems || failed != 1 {
		t.Errorf("%d items were opened, and the client got %d errors", opened, failed)
	}
	do(UserText{Text: "stop"})
	actions = nil
	do(AudioBegan{Item: fmt.Sprint("item", maxItems-1)})
	for _, a := range actions {
		if _, ok := a.(OpenItem); ok {
			t.Error("a flushed item was opened again")
		}
	}
}
