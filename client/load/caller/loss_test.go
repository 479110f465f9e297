package caller

import (
	"io"
	"testing"
	"time"

	"voicegw/client/load/measure"
	"voicegw/client/voice"
)

// TestAMoveIsNoLoss: a session that the gateway gives to another one is counted, and fails no run.
func TestAMoveIsNoLoss(t *testing.T) {
	gone := voice.Event{Kind: voice.WentAway, Act: voice.Move, Err: io.EOF}
	c := &call{Conversation: voice.New(voice.Options{}, nil, time.Now()), Collector: measure.New()}
	c.wentAway(time.Now(), gone)
	if c.Count(measure.Moves) != 1 || c.Count(measure.Losses) != 0 || c.Count(measure.Outages["drop"]) != 0 {
		t.Errorf("%d moves, %d losses, %d drops", c.Count(measure.Moves), c.Count(measure.Losses), c.Count(measure.Outages["drop"]))
	}
}
