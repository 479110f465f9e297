package openai

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// badServer is a provider that answers requests late, twice, in another order or never, starts its own responses, and
// loses the events that end them. It repeats labels.
type badServer struct {
	t   *testing.T
	rng *rand.Rand
	s   sequencer
	now time.Time
	log []string

	sent   []string // event_ids, in order
	open   []string // running responses
	serial int
	signs  int64
	over   map[string]bool // requests with an unwanted answer
	older  map[string]bool // requests with an answer that becomes unwanted if they are abandoned
}

func (b *badServer) note(format string, args ...any) {
	b.log = append(b.log, fmt.Sprintf("%v ", b.now.Sub(seqEpoch))+fmt.Sprintf(format, args...))
}

func (b *badServer) fail(format string, args ...any) {
	b.t.Helper()
	b.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(b.log, "\n"))
}

// goesOut records a sent request.
func (b *badServer) goesOut(c *create) {
	if c != nil {
		b.note("  > %s", c.event)
		b.sent = append(b.sent, c.event)
	}
}

// pass advances time, with the timer's calls.
func (b *badServer) pass(d time.Duration) {
	until := b.now.Add(d)
	for at := b.s.deadline(); !at.IsZero() && !at.After(until); at = b.s.deadline() {
		if at.After(b.now) {
			b.now = at
		}
		b.goesOut(b.s.due(b.now, b.signs))
		if next := b.s.deadline(); !next.IsZero() && !next.After(at) {
			b.fail("a deadline stays")
		}
	}
	b.now = until
}

func (b *badServer) some(list []string) string {
	if len(list) == 0 || b.rng.IntN(12) == 0 {
		return "nothing"
	}
	return list[len(list)-1-b.rng.IntN(min(4, len(list)))]
}

// act simulates one action of the gateway or the server.
func (b *badServer) act() {
	switch n := b.rng.IntN(20); {
	case n < 4:
		b.note("ask")
		b.goesOut(b.s.ask(request{}, b.now, b.signs))
	case n < 6:
		b.note("changed")
		b.s.changed()
		for _, event := range b.sent {
			b.older[event] = true
		}
	case n < 7:
		b.s.withdraw(b.now)
		b.note("withdraw")
		b.overAll()
	case n < 12:
		b.answers(b.some(b.sent))
	case n < 13:
		b.answers("")
	case n < 16:
		id := b.some(b.open)
		b.note("done %s", id)
		b.goesOut(b.s.done(id, b.rng.IntN(6) == 0, b.now))
	case n < 17:
		event := b.some(append([]string{""}, b.sent...))
		code := []string{codeActiveResponse, codeCancelLate, "other"}[b.rng.IntN(3)]
		b.note("refused %q %s", event, code)
		send, _ := b.s.refused(event, code, b.now)
		b.goesOut(send)
	case n < 18:
		b.signs++
	default:
		b.pass(time.Duration(b.rng.IntN(6000)) * time.Millisecond)
	}
	b.check()
}

// overAll marks the answers to all requests so far as unwanted.
func (b *badServer) overAll() {
	for _, event := range b.sent {
		b.over[event] = true
	}
}

// answers begins a response for a request, or one of the server's own. A response is dropped if its request was answered
// or withdrawn, or was made before another answer or, after it was abandoned, before new input.
func (b *badServer) answers(label string) {
	b.serial++
	id := fmt.Sprint("r", b.serial)
	b.open = append(b.open, id)
	waited := b.s.sent != nil && b.s.sent.event == label && b.now.Before(b.s.sent.at.Add(createPatience))
	stale := b.s.created(id, label, b.now)
	b.note("created %s for %q, stale: %t", id, label, stale)
	if stale || !slices.Contains(b.sent, label) {
		return
	}
	if b.over[label] || b.older[label] && !waited {
		b.fail("%s answers %s, which is not wanted any more, and is heard", id, label)
	}
	b.overAll()
}

// check: no request waits forever, whatever the server sends or does not send.
func (b *badServer) check() {
	if b.s.wait == nil {
		return
	}
	s := b.s
	s.late, s.abandoned = slices.Clone(s.late), slices.Clone(s.abandoned)
	now, left := b.now, createPatience+cancelPatience+silencePatience
	for s.wait != nil {
		at := s.deadline()
		if at.IsZero() || at.Sub(b.now) > left {
			b.fail("a request waits, and nothing is due before %v", at.Sub(b.now))
		}
		if at.After(now) {
			now = at
		}
		s.due(now, b.signs)
	}
}

// TestBadServers: a request is always sent in time, and an unwanted answer is always dropped, whatever a provider sends,
// in any order.
func TestBadServers(t *testing.T) {
	for seed := range uint64(4000) {
		b := &badServer{t: t, rng: rand.New(rand.NewPCG(seed, 5)), now: seqEpoch, over: map[string]bool{}, older: map[string]bool{}}
		for range 60 {
			b.act()
		}
	}
}
