package load

import (
	"io"
	"testing"
	"time"

	"voicegw/client/load/report"
	"voicegw/client/voice"
)

// TestMoveIsNoLoss: a session's move to another gateway is counted and does not fail the run.
func TestMoveIsNoLoss(t *testing.T) {
	gone := voice.Event{Kind: voice.Disconnected, Act: voice.Move, Err: io.EOF}
	c := &call{Conversation: voice.New(voice.Options{}, nil, time.Now()), Collector: report.New()}
	c.disconnected(time.Now(), gone)
	if c.Count(report.Moves) != 1 || c.Count(report.Losses) != 0 || c.Count(report.Outages["drop"]) != 0 {
		t.Errorf("%d moves, %d losses, %d drops", c.Count(report.Moves), c.Count(report.Losses), c.Count(report.Outages["drop"]))
	}
}
