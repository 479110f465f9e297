package load

import (
	"math"
	"time"

	"voicegw/audio"
	"voicegw/client/load/report"
	"voicegw/client/voice"
	"voicegw/protocol"
)

// reportingBuffer is the index of the player whose playback is reported.
const reportingBuffer = 1

// resumeTime is how long a caller tries to resume: a gateway's default session timeout.
const resumeTime = 30 * time.Second

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
	case voice.Retrying:
		c.Add(report.ResumeRetries, 1)
	case voice.Resumed:
		c.resumed(now, e)
	case voice.ResumeFailed:
		c.Add(report.ResumesFailed, 1)
		c.problem(now, report.KindResume, e.X, "the session could not be resumed: %s%s", c.ending(e.Err), because(e.GatewayError))
	case voice.OutageSkipped:
		c.Add(report.OutagesSkipped, 1)
		c.problem(now, report.KindResume, e.X, "%s", e.Text)
	case voice.Displaced:
		c.Add(report.Displaced, 1)
	case voice.MissedMessages:
		c.Add(report.LostMessages, e.N)
		c.problem(now, report.KindLostMessage, e.X, "%s", e.Text)
	case voice.MissedAudio:
		c.Add(report.LostBytes, e.N)
		c.problem(now, report.KindLostAudio, e.X, "%d bytes of %s were skipped after a resume", e.N, e.Text)
	case voice.AudioRepeated:
		c.Add(report.RepeatedBytes, e.N)
		c.problem(now, report.KindLostAudio, e.X, "%d bytes of %s were repeated after a resume", e.N, e.Text)
	case voice.SpeechLost:
		c.Add(report.SpeechLost, e.N)
	}
}

// disconnected records a lost connection. Intended outages are counted when the session resumes and are no problem.
func (c *call) disconnected(now time.Time, e voice.Event) {
	c.loseIn(c.Incoming())
	if e.Act == "" {
		c.Add(report.Losses, 1)
		c.problem(now, report.KindDisconnected, e.X, "the connection was lost: %s", c.ending(e.Err))
		return
	}
	if e.Act == voice.Move {
		c.Add(report.Moves, 1)
		return
	}
	c.Add(report.Outages[string(e.Act)], 1)
}

func (c *call) loseIn(i *voice.Item) {
	if c.loss.item != nil && c.loss.item != i {
		c.playedAfterLoss(c.loss.item)
	}
	silent := time.Duration(0)
	if c.loss.item != nil {
		silent = c.loss.silent // lost twice in one answer
	}
	c.loss = loss{}
	if i != nil && !i.First.IsZero() {
		c.loss = loss{item: i, latest: i.Latest, silent: silent}
	}
}

func (c *call) resumed(now time.Time, e voice.Event) {
	r := e.Resumption
	c.Add(report.Resumes, 1)
	c.Record(report.Resume, r.Took)
	c.Record(report.Outage, r.Away)
	if r.Snapshot {
		c.Add(report.Snapshots, 1)
	}
	c.loss.back = true
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

// mismatch counts the bytes by which an answer's length differs from its audio.end.
func (c *call) mismatch(i *voice.Item, ms int64) {
	off := i.Bytes + i.Skipped - audio.Bytes(c.set.OutputRate, time.Duration(ms)*time.Millisecond)
	if off > 0 {
		c.Add(report.RepeatedBytes, int64(off))
		return
	}
	c.Add(report.LostBytes, int64(-off))
}
