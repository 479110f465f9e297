package talk

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/protocol"
)

// at is a moment of these tests, in ms.
func at(ms int) time.Time { return time.UnixMilli(1_000_000 + int64(ms)) }

func testPlayer() (*player, *[]protocol.Playback) {
	var reports []protocol.Playback
	return newPlayer(8000, true, func(p protocol.Playback) { reports = append(reports, p) }), &reports
}

func ms(n int) []byte { return make([]byte, n*16) }

func TestPlayerWaitsForLateAudio(t *testing.T) {
	p, reports := testPlayer()
	i := p.begin(at(0), "a", nil)
	p.add(at(0), i, ms(100))
	p.advance(at(300)) // 200 ms without anything to play
	p.add(at(300), i, ms(50))
	p.end(at(310), "a")
	p.advance(at(349))
	if p.idle() || p.underruns != 1 {
		t.Errorf("idle %v, %d underruns", p.idle(), p.underruns)
	}
	p.advance(at(350))
	if !p.idle() || len(p.heard) != len(ms(150)) {
		t.Errorf("idle %v, %d bytes heard", p.idle(), len(p.heard))
	}
	if diff := cmp.Diff([]protocol.Playback{{ItemID: "a", PlayedMS: 150, Done: true}}, *reports); diff != "" {
		t.Error(diff)
	}
}

func TestPlayerRunsOutAtTheEndWithoutAGap(t *testing.T) {
	p, _ := testPlayer()
	i := p.begin(at(0), "a", nil)
	p.add(at(0), i, ms(100))
	p.advance(at(150))
	p.end(at(160), "a")
	if p.underruns != 0 || !p.idle() {
		t.Errorf("%d underruns, idle %v", p.underruns, p.idle())
	}
}

func TestPlayerPlaysItemsInOrder(t *testing.T) {
	p, reports := testPlayer()
	a := p.begin(at(0), "a", nil)
	p.add(at(0), a, ms(100))
	p.end(at(0), "a")
	b := p.begin(at(10), "b", nil)
	p.add(at(10), b, ms(100))
	p.end(at(10), "b")
	p.advance(at(150))
	p.flush(at(150), "b")
	want := []protocol.Playback{{ItemID: "a", PlayedMS: 100, Done: true}, {ItemID: "b", PlayedMS: 50, Done: true}}
	if diff := cmp.Diff(want, *reports); diff != "" {
		t.Error(diff)
	}
}

func TestPlayerAnswersEveryFlush(t *testing.T) {
	p, reports := testPlayer()
	a := p.begin(at(0), "a", nil)
	p.add(at(0), a, ms(40))
	p.end(at(0), "a")
	p.advance(at(100))
	p.flush(at(100), "a")       // it was over already
	p.flush(at(100), "unknown") // or never was
	want := []protocol.Playback{{ItemID: "a", PlayedMS: 40, Done: true}, {ItemID: "a", PlayedMS: 40, Done: true}, {ItemID: "unknown", Done: true}}
	if diff := cmp.Diff(want, *reports); diff != "" {
		t.Error(diff)
	}
	for n := range 2 * rememberedItems {
		p.end(at(200), p.begin(at(200), string(rune('b'+n)), nil).id)
	}
	if len(p.over) > rememberedItems || !p.idle() {
		t.Errorf("%d items are remembered", len(p.over))
	}
}

// TestPlayerFlushesWhatWaits: an item behind another one was not heard, and what comes after
// the flushes plays at once.
func TestPlayerFlushesWhatWaits(t *testing.T) {
	p, reports := testPlayer()
	for _, id := range []string{"a", "b"} {
		p.add(at(0), p.begin(at(0), id, nil), ms(500))
		p.end(at(0), id)
	}
	p.advance(at(150))
	p.flush(at(150), "a")
	p.flush(at(150), "b")
	p.add(at(160), p.begin(at(160), "c", nil), ms(100))
	p.end(at(160), "c")
	p.advance(at(260))
	want := []protocol.Playback{{ItemID: "a", PlayedMS: 150, Done: true}, {ItemID: "b", Done: true}, {ItemID: "c", PlayedMS: 100, Done: true}}
	if diff := cmp.Diff(want, *reports); diff != "" {
		t.Error(diff)
	}
}

func TestPlayerDoesNotDrift(t *testing.T) {
	p := newPlayer(44100, true, func(protocol.Playback) {})
	i := p.begin(at(0), "a", nil)
	p.add(at(0), i, make([]byte, 44100*2*10))
	for n := 1; n <= 3333; n++ { // steps of 3 ms are no whole number of samples
		p.advance(at(3 * n))
	}
	if got := len(p.heard) / 2; got < 44100*9999/1000-1 || got > 44100*9999/1000+1 {
		t.Errorf("%d samples in 9999 ms", got)
	}
}
