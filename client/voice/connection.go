package voice

import (
	"errors"
	"fmt"
	"time"

	"voicegw/protocol"
)

// Times of a connection that can be lost.
const (
	// firstPause and longestPause bound the pause before an attempt, which doubles each time. The actual pause is
	// between half and all of it.
	firstPause   = 250 * time.Millisecond
	longestPause = 8 * time.Second
	// limitPause is how long a gateway refuses a client that tried too often.
	limitPause = 10 * time.Second
	// pingEvery is the interval of acknowledgements, which the gateway answers. After probeAfter without a message the
	// client pings every probeEvery.
	pingEvery  = 5 * time.Second
	probeAfter = 2 * time.Second
	probeEvery = time.Second
	// readTime is the time without data after which a connection counts as lost.
	readTime = 5 * time.Second
	// moveInterval is the minimum time between two moves that are followed without a pause.
	moveInterval = 30 * time.Second
	// displaceTime limits how long the gateway may leave a replaced connection open.
	displaceTime = 10 * time.Second
)

// Errors of a connection.
var (
	errMoved   = errors.New("the gateway moved the session")
	errTooLong = errors.New("could not resume in time") // all attempts failed
	errSilent  = fmt.Errorf("no data received for %s", readTime)
	errNoStart = errors.New("no session.started received")
	errCut     = errors.New("the connection was cut") // on purpose
)

// noToken is the reason for skipping an outage.
const noToken = "the gateway sent no resume_token; set limits.resume_grace to allow resuming"

type connState int

const (
	online  connState = iota // connected, or opening the first connection
	away                     // disconnected
	opening                  // session.start with resume was sent
)

type connRequest int

const (
	requestDial   connRequest = iota // open another one, then call dialled or dialFailed
	requestReset                     // reset the connection
	requestGoAway                    // close it like a page that is left
)

type connection struct {
	// Fixed after New.
	o    *Options
	emit func(now time.Time, e Event) // reports an event of the current exchange

	out      []protocol.ClientMessage // to be sent while online
	requests []connRequest
	sequence sequence

	state   connState
	closing bool      // the conversation is ending: no more resumes while online
	roaming bool      // another connection is being opened while this one is in use
	began   time.Time // when the session began, or zero
	resumes int       // how often the session was resumed

	sessionID string
	token     string // for the next resume; empty without one
	act       Act    // the act that disconnected; empty if the connection was lost
	// lost is the time of the loss, asked that of the last session.start; tries counts attempts.
	lost, asked time.Time
	tries       int
	dialAt      time.Time       // when to dial; zero for never
	start       *protocol.Start // to send; nil afterwards
	moved       time.Time       // when a move was followed without a pause, or zero

	heard  time.Time // when data last arrived
	pinged time.Time
	// pingT is T of the ping after a resume, whose answer follows the replay; zero after the answer.
	pingT float64
	// snapshot: turns may have ended without a message.
	snapshot bool
	replaced time.Time // since when a replaced connection has been open, or zero
}

func (c *connection) send(m protocol.ClientMessage) { c.out = append(c.out, m) }

func (c *connection) request(r connRequest) { c.requests = append(c.requests, r) }

func (c *connection) sendable() bool {
	return c.state == online && len(c.out) > 0 || c.state == opening && c.start != nil
}

func (c *connection) take(out []protocol.ClientMessage) []protocol.ClientMessage {
	switch c.state {
	case online:
		out = append(out, c.out...)
		clear(c.out)
		c.out = c.out[:0]
	case opening:
		if c.start != nil {
			out = append(out, c.start)
			c.start = nil
		}
	}
	return out
}

// report acknowledges messages and played audio, so that the gateway can drop them. Without a connection, the next
// report includes them.
func (c *connection) report(p protocol.Playback, received int64) {
	if c.token != "" {
		p.ReceivedMS, p.Seq = received, c.sequence.highest
	}
	if c.state == online || p.Done {
		c.send(&p)
	}
}

// accept reports whether to handle a message: only session.started and errors answer a resume; repetitions are over.
func (c *connection) accept(now time.Time, m protocol.ServerMessage) bool {
	switch m.(type) {
	case *protocol.SessionStarted:
	case *protocol.Error:
		if c.state == opening {
			return true // a connection that gets no session has numbers of its own
		}
	default:
		if c.state != online {
			return false
		}
	}
	before, seq := c.sequence.highest, protocol.HeaderOf(m).Seq
	fresh, missing := c.sequence.receive(seq)
	if missing > 0 {
		c.emit(now, Event{Kind: MissedMessages, N: missing, Text: fmt.Sprintf("message %d was followed by message %d", before, seq)})
	}
	return fresh
}

func (c *connection) started(now time.Time, m *protocol.SessionStarted) {
	c.began, c.heard, c.pinged = now, now, now
	if c.o.Resume.Within > 0 {
		c.token = m.ResumeToken
	}
	if c.token == "" && len(c.o.Outages) > 0 {
		c.emit(now, Event{Kind: OutageSkipped, Text: noToken})
	}
}

// steady reports whether the connection may be closed on purpose.
func (c *connection) steady() bool {
	return c.state == online && !c.roaming && c.token != "" && !c.closing
}

// disconnect closes the connection for at least the given time.
func (c *connection) disconnect(now time.Time, act Act, wait time.Duration) {
	switch {
	case c.token == "":
		c.emit(now, Event{Kind: OutageSkipped, Text: noToken})
		return
	case !c.steady():
		c.emit(now, Event{Kind: OutageSkipped, Text: "not connected"})
		return
	}
	c.act = act
	switch act {
	case Roam:
		c.roaming = true
		c.request(requestDial)
		return
	case Reload:
		c.request(requestGoAway)
	default:
		c.request(requestReset)
	}
	c.lose(now, errCut)
	c.dialAt = later(c.dialAt, now.Add(wait))
}

func (c *connection) resumable() bool {
	return c.o.Resume.Within > 0 && c.token != "" && (!c.closing || c.state != online)
}

// mayHelp reports whether reconnecting may help after a read error.
func mayHelp(err error) bool {
	code := protocol.CloseStatus(err)
	return code != protocol.CloseDone && code != protocol.ClosePolicy && code != protocol.CloseTooBig && code < protocol.CloseBadProtocol
}

func (c *connection) fail(now time.Time, err error) {
	switch {
	case c.state != online:
		c.retry(now, err)
	case protocol.CloseStatus(err) == protocol.CloseMoving:
		c.follow(now, err)
	default:
		c.act = ""
		c.lose(now, err)
	}
}

// move handles session.moving: the gateway gave up the session and closes the connection.
func (c *connection) move(now time.Time) {
	if !c.closing && c.resumable() {
		c.request(requestReset)
		c.follow(now, errMoved)
	}
}

// follow resumes at once on the session's new gateway. If sessions move again soon, the client pauses before it
// follows.
func (c *connection) follow(now time.Time, err error) {
	c.act = Move
	c.lose(now, err)
	if c.moved.IsZero() || now.Sub(c.moved) >= moveInterval {
		c.moved, c.dialAt = now, now
	}
}

func (c *connection) lose(now time.Time, err error) {
	c.state, c.roaming, c.pingT = away, false, 0
	c.lost, c.tries = now, 0
	c.dialAt = now.Add(c.pause(1))
	c.emit(now, Event{Kind: Disconnected, Act: c.act, Err: err})
}

// pause returns the wait before an attempt, counted from 1.
func (c *connection) pause(attempt int) time.Duration {
	whole := min(firstPause<<min(attempt-1, 10), longestPause)
	return whole/2 + time.Duration(c.o.Resume.Random()*float64(whole/2))
}

func (c *connection) retry(now time.Time, err error) {
	c.state, c.start = away, nil
	pause := c.pause(c.tries + 1)
	if protocol.CloseStatus(err) == protocol.CloseLimit {
		pause = limitPause
	}
	c.dialAt = now.Add(pause)
	c.emit(now, Event{Kind: Retrying, Err: err})
}

// tick performs the due actions of the connection. An error means that the session cannot be resumed.
func (c *connection) tick(now time.Time) error {
	switch c.state {
	case online:
		c.tickOnline(now)
	case away:
		if now.Sub(c.lost) >= c.o.Resume.Within {
			return errTooLong
		}
		if !c.dialAt.IsZero() && !now.Before(c.dialAt) {
			c.dialAt = time.Time{}
			c.request(requestDial)
		}
	case opening:
		if now.Sub(c.asked) >= c.o.ConnectTime {
			c.request(requestReset)
			c.retry(now, errNoStart)
		}
	}
	return nil
}

func (c *connection) tickOnline(now time.Time) {
	if !c.replaced.IsZero() && now.Sub(c.replaced) >= displaceTime {
		c.replaced = time.Time{}
		c.emit(now, Event{Kind: Violation, Text: fmt.Sprintf("a replaced connection was not closed within %s", displaceTime)})
	}
	switch {
	case c.token == "" || c.closing:
	case now.Sub(c.heard) >= readTime:
		c.act = ""
		c.request(requestReset)
		c.lose(now, errSilent)
	case !now.Before(c.pingAt()):
		c.ping(now)
	}
}

func (c *connection) pingAt() time.Time {
	return earlier(c.pinged.Add(pingEvery), later(c.heard.Add(probeAfter), c.pinged.Add(probeEvery)))
}

// ping acknowledges the received messages and returns the value that its answer will repeat.
func (c *connection) ping(now time.Time) float64 {
	c.pinged = now
	t := float64(now.Sub(c.began).Microseconds()+1) / 1000
	c.send(&protocol.Ping{T: t, Seq: c.sequence.highest})
	return t
}

// next returns when tick is due next; zero for never.
func (c *connection) next() time.Time {
	switch {
	case c.state == away && c.dialAt.IsZero():
		return c.lost.Add(c.o.Resume.Within)
	case c.state == away:
		return earlier(c.dialAt, c.lost.Add(c.o.Resume.Within))
	case c.state == opening:
		return c.asked.Add(c.o.ConnectTime)
	case c.token == "" || c.closing:
		return time.Time{}
	default:
		return earlier(c.pingAt(), c.heard.Add(readTime))
	}
}

// dialled begins to resume on a new connection. It reports whether the connection is wanted, and whether it replaces an
// open one.
func (c *connection) dialled(now time.Time) (wanted, replaces bool) {
	replaces = c.state == online
	// After session.end was sent on the old connection, the session may be over already.
	if c.state == opening || replaces && (!c.roaming || c.closing) {
		return false, false
	}
	if replaces {
		c.lost, c.tries, c.replaced = now, 0, now
		c.emit(now, Event{Kind: Disconnected, Act: c.act, Err: errCut})
	}
	c.state, c.roaming, c.asked, c.dialAt = opening, false, now, time.Time{}
	c.tries++
	s := c.o.Start
	c.start = &protocol.Start{InputRate: s.InputRate, OutputRate: s.OutputRate, Client: s.Client, Resume: &protocol.Resume{
		SessionID: c.sessionID, Token: c.token, LastSeq: c.sequence.highest,
	}}
	c.sequence.replaying = true
	c.sequence.excused += perAttempt
	return true, replaces
}

func (c *connection) dialFailed(now time.Time, err error) {
	switch {
	case c.state == away:
		c.tries++
		c.retry(now, err)
	case c.state == online && c.roaming:
		c.roaming = false
		c.emit(now, Event{Kind: Retrying, Err: err})
	}
}

func (c *connection) displaced(now time.Time, err error) {
	if c.replaced.IsZero() {
		return
	}
	c.replaced = time.Time{}
	c.emit(now, Event{Kind: Displaced, Err: err})
	if code := protocol.CloseStatus(err); code != protocol.CloseResumedElsewhere {
		c.emit(now, Event{Kind: Violation, Text: fmt.Sprintf("a replaced connection ended with %v instead of close code %d", err,
			protocol.CloseResumedElsewhere)})
	}
}

func (c *connection) resumed(now time.Time, m *protocol.SessionStarted) {
	if !m.Resumed || m.SessionID != c.sessionID {
		c.emit(now, Event{Kind: Violation,
			Text: fmt.Sprintf("resume of %s got session.started of %s, resumed %v", c.sessionID, m.SessionID, m.Resumed)})
	}
	c.state, c.token, c.heard, c.snapshot = online, m.ResumeToken, now, m.Snapshot
	c.resumes++
	if m.Snapshot {
		c.sequence.settled = max(c.sequence.settled, m.Seq) // received or lost
	}
	c.emit(now, Event{Kind: Resumed, Resumption: &Resumption{
		Act: c.act, Away: now.Sub(c.lost), Took: now.Sub(c.asked), Tries: c.tries, Snapshot: m.Snapshot,
	}})
	if c.token != "" {
		c.pingT = c.ping(now)
	}
}

// endReplay reports whether a pong ends the replay after a resume.
func (c *connection) endReplay(now time.Time, m *protocol.Pong) bool {
	if c.pingT == 0 || m.T != c.pingT {
		return false
	}
	c.pingT = 0
	if missing := c.sequence.settle(m.Seq); missing > 0 {
		c.emit(now, Event{Kind: MissedMessages, N: missing, Text: fmt.Sprintf("missed messages that were not replayed: %d", missing)})
	}
	return true
}

// window is the number of messages that a gateway can replay (docs/protocol.md).
const window = 1024

// perAttempt is how many sequence numbers a failed attempt may use up: its session.started, and announcements of
// repeated audio. They are not replayed.
const perAttempt = 3

// sequence tracks which messages of a session arrived. Each has a number, seq, rising by one. After a resume, missed
// messages arrive with their old numbers.
type sequence struct {
	seen    [window]int64 // newest number for each remainder
	highest int64
	// settled: gaps up to this number were reported.
	settled int64
	// replaying: missed messages may still arrive.
	replaying bool
	excused   int64 // numbers that may be missing
}

// receive records a message. fresh is false for a repetition. missing counts earlier messages that did not arrive; it
// is 1 for an impossible number.
func (s *sequence) receive(seq int64) (fresh bool, missing int64) {
	if seq < 1 {
		return true, 1
	}
	if s.seen[seq%window] == seq || seq <= s.highest-window {
		if !s.replaying {
			missing = 1
		}
		return false, missing
	}
	s.seen[seq%window] = seq
	if !s.replaying {
		missing = max(seq-s.highest-1, 0)
		if seq < s.highest {
			missing = 1 // it is late
		}
		s.settled = max(s.settled, seq)
	}
	s.highest = max(s.highest, seq)
	return true, missing
}

// settle ends the replay up to a number and returns how many messages are missing. Only attempts that did not get that
// far excuse any.
func (s *sequence) settle(seq int64) (missing int64) {
	for n := max(s.settled+1, seq-window+1); n <= seq; n++ {
		if s.seen[n%window] != n {
			missing++
		}
	}
	missing = max(missing-max(s.excused-perAttempt, 0), 0)
	s.settled, s.replaying, s.excused = max(s.settled, seq), false, 0
	return missing
}
