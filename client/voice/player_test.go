package voice

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/audio"
	"voicegw/protocol"
)

// TestPlayerFlushesQueue: answers play one after another; if two are flushed, the waiting one was not heard, and the
// next audio plays at once.
func TestPlayerFlushesQueue(t *testing.T) {
	const rate = 24000
	var reported []protocol.Playback
	p := newPlayer(rate, []time.Duration{60 * time.Millisecond}, 0, deaf{}, func(r protocol.Playback, _ int64) { reported = append(reported, r) })
	start := time.Unix(1000, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	add := func(ms int, id string, length time.Duration) {
		i := &Item{ID: id}
		p.begin(at(ms), i)
		p.add(at(ms), i, audio.Bytes(rate, length))
		p.end(at(ms), i)
	}
	add(0, "a", 500*time.Millisecond)
	add(0, "b", 500*time.Millisecond)
	p.advance(at(150))
	p.flush(at(150), "a")
	p.flush(at(150), "b")
	add(160, "c", 100*time.Millisecond)
	p.advance(at(260))
	want := []protocol.Playback{{ItemID: "a", PlayedMS: 150, Done: true}, {ItemID: "b", Done: true}, {ItemID: "c", PlayedMS: 100, Done: true}}
	if diff := cmp.Diff(want, reported); diff != "" {
		t.Error(diff)
	}
}

// TestFramesBelongToTheOpenItem: frames belong to the newest item until it ends or is flushed, also during its
// playback.
func TestFramesBelongToTheOpenItem(t *testing.T) {
	p := newPlayer(24000, make([]time.Duration, 1), 0, deaf{}, func(protocol.Playback, int64) {})
	now := time.Unix(1000, 0)
	a, b := &Item{ID: "a"}, &Item{ID: "b"}
	look := func(when string, want *Item) {
		t.Helper()
		if got := p.incoming(); got != want {
			t.Errorf("%s, frames belong to %v", when, got)
		}
	}
	look("before any item", nil)
	p.begin(now, a)
	p.add(now, a, 48000)
	look("while a comes", a)
	p.end(now, a)
	look("while a plays on", nil)
	p.begin(now, b)
	look("once b has begun", b)
	p.flush(now, "a")
	look("once a was flushed", b)
	p.flush(now, "b")
	look("once b was flushed", nil)
}

// deaf is an observer that ignores everything.
type deaf struct{}

func (deaf) Heard(time.Time, protocol.ServerMessage) {}
func (deaf) HeardAudio(time.Time, []byte, *Item)     {}
func (deaf) Played(*Item)                            {}
func (deaf) Underrun(int, time.Duration)             {}
func (deaf) Happened(time.Time, Event)               {}

// TestEveryFlushIsAnswered: also the flush of an answer that has ended or never existed; only some of the ended ones
// are remembered.
func TestEveryFlushIsAnswered(t *testing.T) {
	const rate = 24000
	var reported []protocol.Playback
	p := newPlayer(rate, make([]time.Duration, 1), 0, deaf{}, func(r protocol.Playback, _ int64) { reported = append(reported, r) })
	start := time.Unix(1000, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	i := &Item{ID: "a"}
	p.begin(at(0), i)
	p.add(at(0), i, audio.Bytes(rate, 40*time.Millisecond))
	p.end(at(0), i)
	p.advance(at(100))
	p.flush(at(100), "a")
	p.flush(at(100), "unknown")
	want := []protocol.Playback{{ItemID: "a", PlayedMS: 40, Done: true}, {ItemID: "a", PlayedMS: 40, Done: true}, {ItemID: "unknown", Done: true}}
	if diff := cmp.Diff(want, reported); diff != "" {
		t.Error(diff)
	}
	for n := range 2 * rememberedItems {
		i := &Item{ID: string(rune('b' + n))}
		p.begin(at(200), i)
		p.end(at(200), i)
	}
	if len(p.over) > rememberedItems || !p.idle() {
		t.Errorf("%d items are remembered", len(p.over))
	}
}

// TestHeardBytesAreExact: frames whose length is not a whole number of nanoseconds are heard to the last byte.
func TestHeardBytesAreExact(t *testing.T) {
	const rate = 44100
	p := newPlayer(rate, make([]time.Duration, 1), 0, deaf{}, func(protocol.Playback, int64) {})
	start := time.Unix(1000, 0)
	x := &Exchange{}
	i := &Item{ID: "a", X: x}
	p.begin(start, i)
	for n := range 3333 {
		p.add(start.Add(time.Duration(n)*time.Millisecond), i, 90)
	}
	p.end(start.Add(4*time.Second), i)
	p.advance(start.Add(10 * time.Second))
	if !p.idle() || i.Heard != 3333*90 || x.Heard != i.Heard {
		t.Errorf("of %d bytes %d were heard", i.Bytes, i.Heard)
	}
}
