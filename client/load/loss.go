package load

import (
	"math"
	"time"

	"voicegw/client/load/report"
	"voicegw/client/voice"
	"voicegw/protocol"
)

// reportingBuffer is the index of the player whose playback is reported.
const reportingBuffer = 1

// loss is a lost connection, with the answer in progress at that time.
type loss struct {
	back   bool        // the session resumed, and no audio has arrived since
	item   *voice.Item // the answer; nil if none was in progress
	latest time.Time   // its last frame before the loss
	silent time.Duration
}

type widest struct {
	item *voice.Item
	gap  time.Duration
	n    int // number of gaps
}

func (w *widest) end(c *report.Collector) {
	if w.n > 0 {
		c.Record(report.ItemGap, w.gap)
	}
	*w = widest{}
}

func (c *call) heardFrame(now time.Time, i *voice.Item) {
	afterLoss := c.loss.back
	c.loss.back = false
	if i == c.loss.item && afterLoss {
		c.Record(report.OutageAudio, now.Sub(c.loss.latest))
	}
	if c.gap.item != i {
		c.gap.end(c.Collector)
		c.gap.item = i
	}
	if i.First.IsZero() || afterLoss {
		return
	}
	gap := now.Sub(i.Latest)
	c.Record(report.AudioGap, gap)
	c.gap.gap, c.gap.n = max(c.gap.gap, gap), c.gap.n+1
}

func (c *call) playedAfterLoss(i *voice.Item) {
	if i == c.loss.item {
		c.Record(report.OutageHeard, c.loss.silent)
		c.loss.item = nil
	}
}

func (c *call) connectionEvent(now time.Time, e voice.Event) {
	switch e.Kind {
	case voice.Disconnected:
		c.disconnected(now, e)
	case voice.Resumed:
		c.Record(report.Resume, e.Resumption.Took)
		c.Record(report.Outage, e.Resumption.Away)
		if e.Resumption.Snapshot {
			c.Add(report.Snapshots, 1)
		}
		c.loss.back = true
	case voice.ResumeFailed:
		c.problem(now, report.KindResume, e.X, "the session could not be resumed: %s%s", c.ending(e.Err), because(e.GatewayError))
	case voice.OutageSkipped:
		c.problem(now, report.KindResume, e.X, "%s", e.Text)
	case voice.MissedMessages:
		c.problem(now, report.KindLostMessage, e.X, "%s", e.Text)
	case voice.MissedAudio:
		c.problem(now, report.KindLostAudio, e.X, "%d bytes of %s were skipped after a resume", e.N, e.Text)
	case voice.AudioRepeated:
		c.problem(now, report.KindLostAudio, e.X, "%d bytes of %s were repeated after a resume", e.N, e.Text)
	}
}

// disconnected records a lost connection, with the answer in progress. Intended outages are counted when the session
// resumes and are not problems.
func (c *call) disconnected(now time.Time, e voice.Event) {
	lost := loss{}
	if i := c.Incoming(); i != nil && !i.First.IsZero() {
		lost = loss{item: i, latest: i.Latest}
	}
	if before := c.loss.item; before == lost.item { // lost twice in one answer
		lost.silent = c.loss.silent
	} else if before != nil {
		c.playedAfterLoss(before)
	}
	c.loss = lost
	switch e.Act {
	case "":
		c.Add(report.Losses, 1)
		c.problem(now, report.KindDisconnected, e.X, "the connection was lost: %s", c.ending(e.Err))
	case voice.Move:
		c.Add(report.Moves, 1)
	default:
		c.Add(report.Outages[string(e.Act)], 1)
	}
}

func (c *call) heardLoss(m protocol.ServerMessage) {
	switch m := m.(type) {
	case *protocol.AudioFlush:
		if m.Reason == voice.FlushedByLoss {
			c.Add(report.LossFlushes, 1)
		}
	case *protocol.ProviderReconnecting:
		c.Add(report.ProviderReconnecting, 1)
	case *protocol.ProviderReconnected:
		c.Add(report.ProviderReconnected, 1)
		c.Record(report.ProviderLost, ms(min(m.LostMS, math.MaxInt64/int64(time.Millisecond))))
		if m.How == "fresh" {
			c.Add(report.ProviderFresh, 1)
		}
	}
}
