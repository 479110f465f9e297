package caller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/audio"
	"voicegw/client/load/measure"
	"voicegw/protocol"
)

// TestPlayerFlushesWhatWaits: answers play one after another; one that waits behind another
// was not heard when both are flushed, and what comes next plays at once.
func TestPlayerFlushesWhatWaits(t *testing.T) {
	const rate = 24000
	var told []protocol.Playback
	p := newPlayer(rate, measure.New(), func(r protocol.Playback) { told = append(told, r) })
	start := time.Unix(1000, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	add := func(ms int, id string, length time.Duration) {
		i := &item{id: id}
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
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}
