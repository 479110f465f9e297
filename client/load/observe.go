package load

import (
	"fmt"
	"slices"
	"time"

	"voicegw/audio"
	"voicegw/client/load/report"
	"voicegw/client/voice"
	"voicegw/protocol"
)

// call measures one conversation as its observer. Like the conversation, it is not safe for concurrent use.
type call struct {
	*voice.Conversation
	*report.Collector

	// Fixed when the conversation begins.
	set      *Settings
	session  int
	number   int
	ticketAt time.Time // when the ticket arrived; zero without one
	began    time.Time

	unjudged []*voice.Exchange
	notes    map[*voice.Exchange]notes // of exchanges that have some
	open     map[string]openCall       // running tools by call id
	loss     loss                      // the newest lost connection
	gap      widest
	stale    bool // stale frames have been reported
	cut      bool // the call ended during an unanswered turn
}

// notes has the names of an exchange's tools that were called, that failed, and that asked the user.
type notes struct{ tools, broken, asks []string }

type openCall struct {
	tool  string
	began time.Time
}

func (c *call) note(x *voice.Exchange, added notes) {
	if x == nil {
		return
	}
	n := c.notes[x]
	c.notes[x] = notes{union(n.tools, added.tools), union(n.broken, added.broken), union(n.asks, added.asks)}
}

func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

// scripted returns the script's expectations for an exchange, and their line.
func (c *call) scripted(x *voice.Exchange) (Expect, int) {
	if x.Index < 0 {
		return c.set.Script.Begin.Expect, c.set.Script.Begin.Line
	}
	t := c.set.Script.Turns[x.Index]
	return t.Expect, t.Line
}

func (c *call) problem(now time.Time, kind report.Kind, x *voice.Exchange, format string, args ...any) {
	p := report.Problem{
		Session: c.session, Call: c.number, ID: c.SessionID(), AtMS: now.Sub(c.set.Began).Milliseconds(),
		Kind: kind, What: fmt.Sprintf(format, args...),
	}
	if x != nil {
		p.Turn = x.Number
		if _, line := c.scripted(x); line > 0 {
			p.What += fmt.Sprintf(" (line %d of the script)", line)
		}
	}
	c.Problem(p)
}

func (c *call) sent(lag, block time.Duration) {
	c.Record(report.SendLag, lag)
	c.Record(report.SendBlock, block)
	c.Add(report.FramesUp, 1)
}

func (c *call) HeardAudio(now time.Time, pcm []byte, i *voice.Item) {
	c.Add(report.FramesDown, 1)
	if i != nil {
		c.heardFrame(now, i)
		return
	}
	c.Add(report.StaleFrames, 1)
	if !c.stale {
		c.stale = true
		c.problem(now, report.KindStale, c.Current(),
			"a frame of %d bytes belongs to no answer: it arrived after its flush or before its audio.start", len(pcm))
	}
}

func (c *call) Played(i *voice.Item) {
	c.Add(report.PlayedMS, i.Played.Milliseconds())
	c.playedAfterLoss(i)
}

func (c *call) Underrun(buffer int, gap time.Duration) {
	c.Collector.Underrun(buffer, gap)
	if buffer == reportingBuffer && c.loss.item != nil {
		c.loss.silent += gap
	}
}

// counted are the counters of events that are counted each.
var counted = map[voice.Kind]report.Counter{
	voice.Began: report.Turns, voice.AnsweredEarly: report.Early, voice.Missed: report.MissedInterruptions,
	voice.Answered: report.Answered, voice.Interrupted: report.Interrupted, voice.Failed: report.Failed,
	voice.NothingPending: report.Failed, voice.Stuck: report.Stuck, voice.CutOff: report.Cut,
	voice.Refused: report.Refused, voice.Lost: report.Lost, voice.Retrying: report.ResumeRetries, voice.Resumed: report.Resumes,
	voice.ResumeFailed: report.ResumesFailed, voice.OutageSkipped: report.OutagesSkipped, voice.Displaced: report.Displaced,
}

// summed are the counters of events with a number.
var summed = map[voice.Kind]report.Counter{
	voice.Dropped: report.FramesDropped, voice.SpeechLost: report.SpeechLost, voice.MissedMessages: report.LostMessages,
	voice.MissedAudio: report.LostBytes, voice.AudioRepeated: report.RepeatedBytes,
}

func (c *call) Happened(now time.Time, e voice.Event) {
	if counter, ok := counted[e.Kind]; ok {
		c.Add(counter, 1)
	} else if counter, ok := summed[e.Kind]; ok {
		c.Add(counter, e.N)
	}
	x := e.X
	switch e.Kind {
	case voice.Began:
		c.unjudged = append(c.unjudged, x)
	case voice.FirstAudio:
		c.answered(now, x)
	case voice.Noticed:
		c.Record(report.InterruptSeen, now.Sub(x.Onset))
	case voice.Flushed:
		c.Record(report.Flush, now.Sub(x.Onset))
	case voice.Answered, voice.Interrupted:
		c.judge(now, x)
	case voice.Failed:
		c.problem(now, report.KindFailed, x, "%s", e.Text+because(e.GatewayError))
		c.judge(now, x)
	case voice.NothingPending:
		c.problem(now, report.KindFailed, x, "no answer to the pending request within %s", pendingTime)
		c.judge(now, x)
	case voice.Stuck:
		c.stuck(now, x)
	case voice.CutOff:
		c.cut = true
		c.unjudged = slices.DeleteFunc(c.unjudged, func(u *voice.Exchange) bool { return u == x })
	case voice.Violation:
		c.problem(now, report.KindProtocol, x, "%s", e.Text)
	case voice.Refused:
		c.refused(now, e)
	case voice.Lost:
		c.lost(now, e)
	default:
		c.connectionEvent(now, e)
	}
}

func (c *call) lost(now time.Time, e voice.Event) {
	if e.Err == nil {
		c.problem(now, report.KindLost, nil, "%s", e.Text)
		return
	}
	if c.LastError() == nil {
		c.Error("lost") // otherwise the gateway's own error was counted
	}
	c.problem(now, report.KindLost, e.X, "the session ended: %s", c.ending(e.Err))
}

func (c *call) answered(now time.Time, x *voice.Exchange) {
	if x.Number == 0 {
		c.Record(report.Handoff, now.Sub(c.ticketAt))
		return
	}
	total := now.Sub(x.Spoken)
	c.Record(report.FirstAudio, total)
	if x.Turn.Act == voice.Type {
		c.Record(report.FirstAudioTyped, total)
	} else {
		c.Record(report.FirstAudioSpoken, total)
	}
	if x.Known.IsZero() {
		return
	}
	if x.Turn.Act == voice.Say {
		c.Record(report.Detection, x.Known.Sub(x.Spoken))
	}
	answer := now.Sub(x.Known)
	c.Record(report.Answer, answer)
	if c.set.ProviderDelay > 0 {
		c.Record(report.Added, answer-c.set.ProviderDelay)
	}
}

func because(e *protocol.Error) string {
	if e == nil {
		return ""
	}
	return ": " + e.Code + ": " + e.Message
}

func (c *call) stuck(now time.Time, x *voice.Exchange) {
	heard := "no answer began"
	if x.Bytes > 0 {
		heard = "the answer did not end"
	}
	c.problem(now, report.KindStuck, x, "%s for %s since the user stopped speaking%s",
		heard, now.Sub(x.Spoken).Round(100*time.Millisecond), because(c.LastError()))
}

func (c *call) refused(now time.Time, e voice.Event) {
	what := e.Text
	if e.Err != nil {
		c.Error("refused")
		what = c.ending(e.Err)
		if last := c.LastError(); last != nil {
			what = last.Code + ": " + last.Message
		}
		what = "the gateway refused the session: " + what
	}
	c.problem(now, report.KindRefused, nil, "%s", what)
}

func (c *call) ending(err error) string {
	if reason := c.Ended(); reason != "" {
		return reason
	}
	if code := protocol.CloseStatus(err); code >= 0 {
		return fmt.Sprintf("the gateway closed with %d", code)
	}
	return err.Error()
}

func (c *call) Heard(now time.Time, m protocol.ServerMessage) {
	switch m := m.(type) {
	case *protocol.SessionStarted:
		if !c.Started() && m.InputRate == c.set.InputRate && m.OutputRate == c.set.OutputRate {
			c.Add(report.Sessions, 1)
			c.Record(report.Ready, now.Sub(c.began))
		}
	case *protocol.TurnEnded:
		if l := m.Latency; l != nil {
			c.Record(report.GatewayTotal, ms(l.SpeechEndToFirstAudioMS))
			c.Record(report.GatewayDetection, ms(l.DetectionMS))
			c.Record(report.GatewayProvider, ms(l.ProviderMS))
			c.Record(report.GatewayOwn, ms(l.GatewayMS))
		}
	case *protocol.AudioEnd:
		if i := c.Open(m.ItemID); i != nil { // the conversation reports other items
			c.heardAudioEnd(now, m, i)
		}
	case *protocol.ToolStarted:
		if len(c.open) < maxOpenCalls {
			c.open[m.CallID] = openCall{tool: m.Tool, began: now}
		}
		c.note(c.About(m.Turn), notes{tools: []string{m.Tool}})
	case *protocol.ToolEnded:
		c.heardToolEnded(now, m)
	case *protocol.ConfirmationRequest:
		c.Add(report.Questions, 1)
		c.note(c.About(m.Turn), notes{asks: []string{m.Tool}})
	case *protocol.ConfirmationEnded:
		switch m.Outcome {
		case "approved":
			c.Add(report.Approvals, 1)
		case "denied":
			c.Add(report.Refusals, 1)
		}
	case *protocol.SessionEnded:
		if at := c.LeftAt(); !at.IsZero() && c.Ended() == "" {
			c.Record(report.Goodbye, now.Sub(at))
		}
	case *protocol.Error:
		c.heardError(now, m)
	default:
		c.heardLoss(m)
	}
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// lostTolerance allows for lengths rounded to ms.
const lostTolerance = 2

func (c *call) heardAudioEnd(now time.Time, m *protocol.AudioEnd, i *voice.Item) {
	c.Add(report.Items, 1)
	c.Record(report.BufferNeeded, i.Needed)
	got := audio.MS(c.set.OutputRate, i.Bytes)
	if off := max(got-m.AudioMS, m.AudioMS-got); i.Reloaded || off <= lostTolerance {
		return
	}
	c.Add(report.LostAudio, 1)
	off := int64(i.Bytes + i.Skipped - audio.Bytes(c.set.OutputRate, ms(m.AudioMS)))
	c.Add(report.RepeatedBytes, max(off, 0))
	c.Add(report.LostBytes, max(-off, 0))
	c.problem(now, report.KindLostAudio, i.X, "audio.end says %d ms of %s, %d ms came", m.AudioMS, m.ItemID, got)
}

const maxOpenCalls = 1000

func (c *call) heardToolEnded(now time.Time, m *protocol.ToolEnded) {
	x := c.About(m.Turn)
	began, known := c.open[m.CallID]
	delete(c.open, m.CallID)
	if !known {
		c.problem(now, report.KindTool, x, "tool.ended of %s without a tool.started", m.Tool)
		return
	}
	if c.set.SawCall != nil {
		c.set.SawCall(c.SessionID(), m.CallID)
	}
	asks, run := m.Asks(), ms(m.DurationMS)
	c.Add(report.ToolCalls, 1)
	c.Tool(m.Tool, m.OK || asks, m.Deduplicated, run)
	if m.Deduplicated {
		c.Add(report.ToolRepeats, 1)
	} else if !asks {
		total := now.Sub(began.began)
		c.Record(report.ToolTotal, total)
		c.Record(report.ToolRun, run)
		c.Record(report.ToolWait, total-run)
	}
	if !m.OK && !asks {
		c.Add(report.ToolFailures, 1)
		c.note(x, notes{broken: []string{m.Tool}})
	}
}

func (c *call) heardError(now time.Time, m *protocol.Error) {
	x := c.About(m.Turn)
	if x != nil {
		if expects, _ := c.scripted(x); expects.Error == m.Code {
			return
		}
	}
	c.Error(m.Code)
	if c.Started() { // refused reports the other case
		c.problem(now, report.KindError, x, "%s: %s", m.Code, m.Message)
	}
}

// finish is called once, after everything else.
func (c *call) finish(now time.Time) {
	c.judgeRest(now)
	c.gap.end(c.Collector)
	if c.Done() && !c.cut {
		c.Add(report.ToolsOpen, int64(len(c.open)))
		for _, open := range c.open {
			c.problem(now, report.KindTool, nil, "no tool.ended for the call of %s", open.tool)
		}
	}
}
