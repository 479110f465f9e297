package voice

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"voicegw/audio"
	"voicegw/protocol"
)

// Return configures resuming after a lost connection.
type Return struct {
	// Within is the time limit after the loss. With zero, a lost connection ends the conversation.
	Within time.Duration
	// Random returns a number in [0, 1) that varies the pauses between attempts. It is required if Within is set.
	Random func() float64
}

// Returned describes a resume.
type Returned struct {
	// Act is the act that disconnected; empty if the connection was lost.
	Act Act
	// Away is the time without a connection, from the loss to session.started. Took is the part since session.start.
	Away, Took time.Duration
	// Tries counts attempts, from 1.
	Tries int
	// Snapshot: the gateway did not keep all missed messages.
	Snapshot bool
}

// Times of a connection that can be lost.
const (
	// firstPause and longestPause bound the pause before an attempt, which doubles each time. The actual pause is
	// between half and all of it.
	firstPause   = 250 * time.Millisecond
	longestPause = 8 * time.Second
	// eagerPause is how long a gateway refuses a client that tried too often.
	eagerPause = 10 * time.Second
	// pingEvery is the interval of acknowledgements, which the gateway answers. After askAfter without a message the
	// client pings every askEvery.
	pingEvery = 5 * time.Second
	askAfter  = 2 * time.Second
	askEvery  = time.Second
	// silence is the time without data after which a connection counts as lost.
	silence = 5 * time.Second
	// movesApart is the minimum time between two moves that are followed without a pause.
	movesApart = 30 * time.Second
	// kept limits the audio kept without a connection: as much as a gateway accepts at once.
	kept = 15 * time.Second
	// displaceTime limits how long the gateway may leave a replaced connection open.
	displaceTime = 10 * time.Second
)

// connState is the state of the connection to the gateway.
type connState int

const (
	online  connState = iota // connected, or opening the first connection
	away                     // disconnected
	opening                  // session.start with resume was sent
)

// way is the connection of a conversation and its replacement.
type way struct {
	state   connState
	roaming bool      // another connection is being opened while this one is in use
	began   time.Time // when the session began, or zero

	returns int // how often the conversation resumed

	token string // for the next resume; empty without one
	act   Act    // the act that disconnected; empty if the connection was lost
	// lost is the time of the loss, asked that of the last session.start; tries counts attempts.
	lost, asked time.Time
	tries       int
	dialAt      time.Time       // when to dial; zero for never
	start       *protocol.Start // to send; nil afterwards
	named       string          // item named by the last resume, or empty
	moved       time.Time       // when a move was followed without a pause, or zero

	heard  time.Time // when data last arrived
	pinged time.Time
	// settling is T of the ping after a resume. Its answer follows the replay.
	settling float64
	// snapshot: turns may have ended without a message.
	snapshot bool
	again    bool          // speech is being replayed
	catching bool          // kept microphone audio is being sent
	keeps    time.Duration // limit of that audio
	replaced time.Time     // since when a replaced connection has been open, or zero
}

// connRequest is a request about connections.
type connRequest int

const (
	requestDial   connRequest = iota // open another one, then call dialled or undialled
	requestReset                     // reset the connection
	requestGoAway                    // close it like a page that is left
)

func (c *Conversation) connRequest(w connRequest) { c.requests = append(c.requests, w) }

// sendable reports whether messages can be sent now.
func (c *Conversation) sendable() bool {
	return c.way.state == online && len(c.out) > 0 || c.way.state == opening && c.way.start != nil
}

// take appends the messages to send now to out.
func (c *Conversation) take(out []protocol.ClientMessage) []protocol.ClientMessage {
	switch c.way.state {
	case online:
		out = append(out, c.out...)
		clear(c.out)
		c.out = c.out[:0]
	case opening:
		if c.way.start != nil {
			out = append(out, c.way.start)
			c.way.start = nil
		}
	case away:
	}
	return out
}

// Away reports whether the conversation is disconnected.
func (c *Conversation) Away() bool { return c.way.state != online }

// startResume begins to resume after a read error, if that may succeed.
func (c *Conversation) startResume(now time.Time, err error) bool {
	w := &c.way
	switch {
	case c.o.Return.Within == 0 || w.token == "" || c.ended != "" || c.phase == phaseStarting || c.phase == phaseOver:
		return false
	case c.phase == phaseLeaving && w.state == online:
		return false // the goodbye was sent
	case !mayHelp(err):
		if w.state == opening {
			c.giveUp(now, err)
			return true
		}
		return false
	}
	switch {
	case w.state != online:
		c.again(now, err)
	case protocol.CloseStatus(err) == protocol.CloseMoving:
		c.loseByMove(now, err)
	default:
		w.act = ""
		c.loseAt(now, err)
	}
	return true
}

// errMoved is the error of a connection whose session moved to another gateway.
var errMoved = errors.New("the gateway moved the session")

// hearMoving handles session.moving: the gateway gave up the session and closes the connection.
func (c *Conversation) hearMoving(now time.Time) {
	if c.o.Return.Within == 0 || c.way.token == "" || c.phase >= phaseLeaving {
		return
	}
	c.connRequest(requestReset)
	c.loseByMove(now, errMoved)
}

// loseByMove resumes at once on the session's new gateway. If sessions move again soon, the client pauses before it
// follows.
func (c *Conversation) loseByMove(now time.Time, err error) {
	w := &c.way
	w.act = Move
	c.loseAt(now, err)
	if w.moved.IsZero() || now.Sub(w.moved) >= movesApart {
		w.moved, w.dialAt = now, now
	}
}

// mayHelp reports whether reconnecting may help after a read error.
func mayHelp(err error) bool {
	code := protocol.CloseStatus(err)
	return code != protocol.CloseDone && code != protocol.ClosePolicy && code != protocol.CloseTooBig && code < protocol.CloseBadProtocol
}

// loseAt records the loss of the connection.
func (c *Conversation) loseAt(now time.Time, err error) {
	w := &c.way
	w.state, w.roaming, w.settling, w.catching = away, false, 0, false
	w.lost, w.tries = now, 0
	w.dialAt = now.Add(c.pause(1))
	c.observer.Happened(now, Event{Kind: WentAway, X: c.cur, Act: w.act, Err: err})
}

// pause returns the wait before an attempt, counted from 1.
func (c *Conversation) pause(attempt int) time.Duration {
	whole := min(firstPause<<min(attempt-1, 10), longestPause)
	return whole/2 + time.Duration(c.o.Return.Random()*float64(whole/2))
}

// again schedules the next attempt.
func (c *Conversation) again(now time.Time, err error) {
	w := &c.way
	w.state, w.start = away, nil
	pause := c.pause(w.tries + 1)
	if protocol.CloseStatus(err) == protocol.CloseLimit {
		pause = eagerPause
	}
	w.dialAt = now.Add(pause)
	c.observer.Happened(now, Event{Kind: Retrying, X: c.cur, Err: err})
}

// giveUp ends a conversation that cannot resume.
func (c *Conversation) giveUp(now time.Time, err error) {
	c.observer.Happened(now, Event{Kind: NotBack, X: c.cur, Err: err, Told: c.lastError})
	c.observer.Happened(now, Event{Kind: Lost, X: c.cur, Err: err})
	c.cutOff(now)
	c.enter(now, phaseOver)
}

// errTooLong ends a conversation whose attempts all failed.
var errTooLong = errors.New("could not resume in time")

// errSilent is the error of a connection that stopped delivering data. pingAt returns when the next ping is due.
func (w *way) pingAt() time.Time {
	return earlier(w.pinged.Add(pingEvery), later(w.heard.Add(askAfter), w.pinged.Add(askEvery)))
}

var errSilent = fmt.Errorf("no data received for %s", silence)

// errNoStart fails an attempt that the gateway does not answer.
var errNoStart = errors.New("no session.started received")

// tickConnection performs the due actions of the connection.
func (c *Conversation) tickConnection(now time.Time) {
	w := &c.way
	switch w.state {
	case online:
		c.tickOnline(now)
	case away:
		if c.phase == phaseOver {
			return
		}
		if now.Sub(w.lost) >= c.o.Return.Within {
			c.giveUp(now, errTooLong)
			return
		}
		if !w.dialAt.IsZero() && !now.Before(w.dialAt) {
			w.dialAt = time.Time{}
			c.connRequest(requestDial)
		}
	case opening:
		if now.Sub(w.asked) >= c.o.ConnectTime {
			c.connRequest(requestReset)
			c.again(now, errNoStart)
		}
	}
}

func (c *Conversation) tickOnline(now time.Time) {
	w := &c.way
	if !w.replaced.IsZero() && now.Sub(w.replaced) >= displaceTime {
		w.replaced = time.Time{}
		c.tellText(now, Violation, c.cur, fmt.Sprintf("a replaced connection was not closed within %s", displaceTime))
	}
	if w.token == "" || c.phase >= phaseLeaving {
		return
	}
	if now.Sub(w.heard) >= silence {
		w.act = ""
		c.connRequest(requestReset)
		c.loseAt(now, errSilent)
		return
	}
	if !now.Before(w.pingAt()) {
		c.ping(now)
	}
}

// ping acknowledges what arrived and returns the value that its answer will repeat.
func (c *Conversation) ping(now time.Time) float64 {
	c.way.pinged = now
	t := float64(now.Sub(c.way.began).Microseconds()+1) / 1000
	c.send(&protocol.Ping{T: t, Seq: c.order.highest})
	return t
}

// nextConnectionTick returns when tickConnection is due next; zero for never.
func (c *Conversation) nextConnectionTick() time.Time {
	w := &c.way
	switch {
	case w.state == away && w.dialAt.IsZero():
		return w.lost.Add(c.o.Return.Within)
	case w.state == away:
		return earlier(w.dialAt, w.lost.Add(c.o.Return.Within))
	case w.state == opening:
		return w.asked.Add(c.o.ConnectTime)
	case w.token == "" || c.phase >= phaseLeaving:
		return time.Time{}
	default:
		return earlier(w.pingAt(), w.heard.Add(silence))
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// dialled switches to a new connection; later data of the old one is ignored. It reports whether the connection is
// wanted, and whether it replaces an open one.
func (c *Conversation) dialled(now time.Time) (wanted, replaces bool) {
	w := &c.way
	switch {
	case c.phase == phaseOver, w.state == opening, w.state == online && !w.roaming:
		return false, false
	case c.phase == phaseLeaving && w.state == online:
		return false, false // the goodbye was sent on the old one: the session may be over already
	}
	if w.state == online {
		replaces = true
		w.lost, w.tries, w.replaced = now, 0, now
		c.observer.Happened(now, Event{Kind: WentAway, X: c.cur, Act: w.act, Err: errCut})
	}
	w.state, w.roaming, w.asked, w.dialAt = opening, false, now, time.Time{}
	w.tries++
	s := c.o.Start
	w.named = ""
	w.start = &protocol.Start{InputRate: s.InputRate, OutputRate: s.OutputRate, Client: s.Client, Resume: &protocol.Resume{
		SessionID: c.id, Token: w.token, LastSeq: c.order.highest,
	}}
	if i := c.player.newest; i != nil {
		w.named = i.ID
		w.start.Resume.Audio = &protocol.ResumeAudio{ItemID: i.ID, ReceivedMS: audio.MS(c.o.Start.OutputRate, i.position())}
	}
	if c.mic != nil {
		w.start.Resume.Input = c.spoken.kept(c.mic.recorded(now))
	}
	c.player.incomingItem = nil
	c.order.ask()
	c.lastError = nil
	return true, replaces
}

// undialled handles a failed dial.
func (c *Conversation) undialled(now time.Time, err error) {
	switch {
	case c.way.state == away:
		c.way.tries++
		c.again(now, err)
	case c.way.state == online && c.way.roaming:
		c.way.roaming = false
		c.observer.Happened(now, Event{Kind: Retrying, X: c.cur, Err: err})
	}
}

// displaced handles the end of a replaced connection.
func (c *Conversation) displaced(now time.Time, err error) {
	if c.way.replaced.IsZero() {
		return
	}
	c.way.replaced = time.Time{}
	c.observer.Happened(now, Event{Kind: Displaced, X: c.cur, Err: err})
	if code := protocol.CloseStatus(err); code != protocol.CloseResumedElsewhere {
		c.tellText(now, Violation, c.cur, fmt.Sprintf("a replaced connection ended with %v instead of close code %d", err,
			protocol.CloseResumedElsewhere))
	}
}

// hearResumed handles session.started of a resumed session.
func (c *Conversation) hearResumed(now time.Time, m *protocol.SessionStarted) {
	w := &c.way
	if !m.Resumed || m.SessionID != c.id {
		c.tellText(now, Violation, c.cur, fmt.Sprintf("resume of %s got session.started of %s, resumed %v", c.id, m.SessionID, m.Resumed))
	}
	w.state, w.token, w.heard, w.catching = online, m.ResumeToken, now, true
	w.returns++
	if m.Snapshot {
		c.order.skip(m.Seq)
		clear(c.opened)
		c.player.doubt()
		c.doubtQuestions()
	}
	w.snapshot, w.again = m.Snapshot, m.InputAgain
	if m.Snapshot && c.cur != nil {
		c.cur.taken = false // the snapshot shows it
	}
	c.sign, c.word, c.news = now, now, true
	if c.mic != nil {
		c.replaySpeech(now, m)
	}
	c.observer.Happened(now, Event{Kind: CameBack, X: c.cur, Returned: &Returned{
		Act: w.act, Away: now.Sub(w.lost), Took: now.Sub(w.asked), Tries: w.tries, Snapshot: m.Snapshot,
	}})
	if w.token != "" {
		w.settling = c.ping(now)
	}
}

// replaySpeech replays the speech that the new gateway requests after a takeover. Otherwise it replays the newest part of
// the lost and unsent speech.
func (c *Conversation) replaySpeech(now time.Time, m *protocol.SessionStarted) {
	before := now.Add(-kept)
	c.way.keeps = kept
	skip := c.spoken.resumed(m, min(c.mic.recorded(now), c.spoken.bytes(kept.Milliseconds())))
	if m.InputAgain {
		c.way.keeps = keptSpeech
		before = c.mic.due().Add(time.Duration(skip/int64(c.mic.bytes)) * c.mic.length)
	}
	if m.InputAgain || len(c.spoken.again) > 0 {
		c.out = slices.DeleteFunc(c.out, func(m protocol.ClientMessage) bool { _, press := m.(*protocol.InputActivity); return press })
	}
	if n := c.mic.skip(before); n > 0 {
		c.observer.Happened(now, Event{Kind: Unsaid, N: n})
	}
}

// hearConnection handles messages about the connection.
func (c *Conversation) hearConnection(now time.Time, m protocol.ServerMessage) {
	switch m := m.(type) {
	case *protocol.Pong:
		c.hearPong(now, m)
	case *protocol.SessionMoving:
		c.hearMoving(now)
	}
}

func (c *Conversation) hearPong(now time.Time, m *protocol.Pong) {
	if c.way.settling == 0 || m.T != c.way.settling {
		return
	}
	c.way.settling = 0
	if missing := c.order.settle(m.Seq); missing > 0 {
		c.observer.Happened(now, Event{Kind: MissedMessages, X: c.cur, N: missing,
			Text: fmt.Sprintf("missed messages that were not replayed: %d", missing)})
	}
	if c.way.snapshot {
		c.player.caughtUp(now)
		c.endDoubtful(now)
	}
	c.answerAgain(now)
	switch x := c.cur; {
	case x == nil || x.returns == c.way.returns:
		// It began on this connection, so nothing was lost.
	case c.unstopped(x):
		c.send(&protocol.Interrupt{})
		x.Onset, x.Spoken, c.word, c.sign = now, now, now, now
	case c.unheard(x):
		c.send(&protocol.InputText{Text: x.Words.Text})
		x.Spoken, c.word, c.sign = now, now, now
	case x.Turn.Act == Say && c.way.again && x.Bytes == 0:
		// It is replayed, and answered again.
	case c.way.snapshot && len(c.opened) == 0 && !now.Before(x.Spoken):
		x.Completed = true // its end was among the messages that are lost
	}
	c.way.snapshot = false
}

// unstopped reports whether the stop of an exchange that began on an earlier connection was lost with it: its target is
// still playing.
func (c *Conversation) unstopped(x *Exchange) bool {
	return x.Turn.Act == Stop && !x.Settled && x.Flushed.IsZero() && !c.player.idle()
}

// unheard reports whether the text of an exchange that began on an earlier connection was lost with it or with the
// gateway: no later message refers to it.
func (c *Conversation) unheard(x *Exchange) bool {
	return x.Turn.Act == Type && x.Index >= 0 && !x.taken && x.Bytes == 0
}
