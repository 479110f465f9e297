package voice

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"voicegw/audio"
	"voicegw/protocol"
)

// Return is how a conversation comes back to its session after its connection was lost.
type Return struct {
	// Within is how long after the loss it gives up; zero means that a lost connection ends the
	// conversation.
	Within time.Duration
	// Random returns a number in [0, 1), by which the pauses between attempts differ. It is needed
	// if Within is set.
	Random func() float64
}

// Returned is how a conversation has come back.
type Returned struct {
	// Act is what took the connection away; empty if it was lost by itself.
	Act Act
	// Away is how long there was no connection: from the loss to session.started. Took is the part
	// of it from session.start to session.started.
	Away, Took time.Duration
	// Tries counts the attempts, from 1.
	Tries int
	// Snapshot means that the gateway did not keep all messages that were missed.
	Snapshot bool
}

// The times of a connection that can be lost.
const (
	// firstPause and longestPause are those before attempts to come back; each is drawn from its
	// half to its whole, and is twice the one before.
	firstPause   = 250 * time.Millisecond
	longestPause = 8 * time.Second
	// eagerPause is how long a gateway refuses those who have tried too often.
	eagerPause = 10 * time.Second
	// pingEvery is how often the gateway is told what has come; it answers. After askAfter without anything of it it
	// is asked each askEvery.
	pingEvery = 5 * time.Second
	askAfter  = 2 * time.Second
	askEvery  = time.Second
	// silence is how long nothing comes of a connection before it counts as lost.
	silence = 5 * time.Second
	// movesApart is how long after a move the next one is followed without a pause.
	movesApart = 30 * time.Second
	// kept is how much of the microphone is kept while there is no connection: as much as a gateway takes at once.
	kept = 15 * time.Second
	// displaceTime is how long the gateway may take to close a connection that was replaced.
	displaceTime = 10 * time.Second
)

// wayState is the state of the way to the gateway.
type wayState int

const (
	online  wayState = iota // there is a connection, or the first one is opening
	away                    // there is no connection
	opening                 // session.start with resume was sent
)

// way is the connection of a conversation, and how another one replaces it.
type way struct {
	state   wayState
	roaming bool      // another connection is being opened while this one is used
	began   time.Time // when the session did; zero before

	returns int // how often the conversation has come back

	token string // for the next resume; empty if the gateway has given no token
	act   Act    // what took the connection away; empty if it was lost by itself
	// lost is when the connection was, asked when session.start was sent, tries counts attempts.
	lost, asked time.Time
	tries       int
	dialAt      time.Time       // when to dial; zero while there is no need
	start       *protocol.Start // to send; nil once it was
	named       string          // the item that the last resume has named; empty without one
	moved       time.Time       // when a move was followed without a pause; zero before

	heard  time.Time // when something came last
	pinged time.Time
	// settling is T of the ping after a resume; its answer comes after all that was missed.
	settling float64
	// snapshot means that turns may have ended of which nothing will be said.
	snapshot bool
	again    bool          // what was said is said again
	catching bool          // what the microphone has kept is being sent
	keeps    time.Duration // how much that may be
	replaced time.Time     // since when a connection that was replaced is still open; zero if there is no such connection
}

// wish is something that the conversation wants done to its connections.
type wish int

const (
	wishDial   wish = iota // open another one, and call dialled or undialled
	wishReset              // cut it without a word
	wishGoAway             // leave it as a page does that is closed
)

func (c *Conversation) wish(w wish) { c.wishes = append(c.wishes, w) }

// sendable reports whether there are messages that may be sent now.
func (c *Conversation) sendable() bool {
	return c.way.state == online && len(c.out) > 0 || c.way.state == opening && c.way.start != nil
}

// take appends the messages that may be sent now to out.
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

// Away reports whether there is no connection at the moment.
func (c *Conversation) Away() bool { return c.way.state != online }

// comesBack begins to come back after a loss, if that makes sense; the error is that of reading.
func (c *Conversation) comesBack(now time.Time, err error) bool {
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

// errMoved is why a connection is gone whose session the gateway has given to another one.
var errMoved = errors.New("the gateway has moved the session")

// hearMoving takes session.moving: the gateway has given the session up, and closes the connection.
func (c *Conversation) hearMoving(now time.Time) {
	if c.o.Return.Within == 0 || c.way.token == "" || c.phase >= phaseLeaving {
		return
	}
	c.wish(wishReset)
	c.loseByMove(now, errMoved)
}

// loseByMove records that the session goes on elsewhere, and comes back at once. A gateway that moves
// again what has just come is followed with pauses.
func (c *Conversation) loseByMove(now time.Time, err error) {
	w := &c.way
	w.act = Move
	c.loseAt(now, err)
	if w.moved.IsZero() || now.Sub(w.moved) >= movesApart {
		w.moved, w.dialAt = now, now
	}
}

// mayHelp reports whether connecting again may help after an error of reading.
func mayHelp(err error) bool {
	code := protocol.CloseStatus(err)
	return code != protocol.CloseDone && code != protocol.ClosePolicy && code != protocol.CloseTooBig && code < protocol.CloseBadProtocol
}

// loseAt records that the connection is gone.
func (c *Conversation) loseAt(now time.Time, err error) {
	w := &c.way
	w.state, w.roaming, w.settling, w.catching = away, false, 0, false
	w.lost, w.tries = now, 0
	w.dialAt = now.Add(c.pause(1))
	c.observer.Happened(now, Event{Kind: WentAway, X: c.cur, Act: w.act, Err: err})
}

// pause returns how long to wait before an attempt, from 1.
func (c *Conversation) pause(attempt int) time.Duration {
	whole := min(firstPause<<min(attempt-1, 10), longestPause)
	return whole/2 + time.Duration(c.o.Return.Random()*float64(whole/2))
}

// again plans another attempt after one that has failed.
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

// giveUp ends a conversation that cannot come back.
func (c *Conversation) giveUp(now time.Time, err error) {
	c.observer.Happened(now, Event{Kind: NotBack, X: c.cur, Err: err, Told: c.lastError})
	c.observer.Happened(now, Event{Kind: Lost, X: c.cur, Err: err})
	c.cutOff(now)
	c.enter(now, phaseOver)
}

// errTooLong is why a conversation does not come back whose attempts have all failed.
var errTooLong = errors.New("no attempt to come back succeeded in time")

// errSilent is why a connection counts as lost that says nothing.
// pingAt returns when the gateway is asked next whether it is there.
func (w *way) pingAt() time.Time {
	return earlier(w.pinged.Add(pingEvery), later(w.heard.Add(askAfter), w.pinged.Add(askEvery)))
}

var errSilent = fmt.Errorf("nothing has come for %s", silence)

// errNoStart is why an attempt has failed that the gateway does not answer.
var errNoStart = errors.New("no session.started came")

// tickWay does what is due about the connection.
func (c *Conversation) tickWay(now time.Time) {
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
			c.wish(wishDial)
		}
	case opening:
		if now.Sub(w.asked) >= c.o.ConnectTime {
			c.wish(wishReset)
			c.again(now, errNoStart)
		}
	}
}

func (c *Conversation) tickOnline(now time.Time) {
	w := &c.way
	if !w.replaced.IsZero() && now.Sub(w.replaced) >= displaceTime {
		w.replaced = time.Time{}
		c.tellText(now, Violation, c.cur, fmt.Sprintf("a connection that another one has replaced was not closed within %s", displaceTime))
	}
	if w.token == "" || c.phase >= phaseLeaving {
		return
	}
	if now.Sub(w.heard) >= silence {
		w.act = ""
		c.wish(wishReset)
		c.loseAt(now, errSilent)
		return
	}
	if !now.Before(w.pingAt()) {
		c.ping(now)
	}
}

// ping tells the gateway what has come, and returns what its answer will carry.
func (c *Conversation) ping(now time.Time) float64 {
	c.way.pinged = now
	t := float64(now.Sub(c.way.began).Microseconds()+1) / 1000
	c.send(&protocol.Ping{T: t, Seq: c.order.highest})
	return t
}

// nextOfWay returns when tickWay has something to do; zero for never.
func (c *Conversation) nextOfWay() time.Time {
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

// dialled says that there is a new connection: from now on nothing counts that still comes of the old
// one. It reports whether the connection is wanted, and whether it replaces one that is open.
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

// undialled says that no connection could be opened.
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

// displaced says that a connection has ended which another one has replaced.
func (c *Conversation) displaced(now time.Time, err error) {
	if c.way.replaced.IsZero() {
		return
	}
	c.way.replaced = time.Time{}
	c.observer.Happened(now, Event{Kind: Displaced, X: c.cur, Err: err})
	if code := protocol.CloseStatus(err); code != protocol.CloseResumedElsewhere {
		c.tellText(now, Violation, c.cur, fmt.Sprintf("a connection that another one has replaced ended with %v, not with close code %d", err, protocol.CloseResumedElsewhere))
	}
}

// hearResumed takes the session.started of a session that goes on.
func (c *Conversation) hearResumed(now time.Time, m *protocol.SessionStarted) {
	w := &c.way
	if !m.Resumed || m.SessionID != c.id {
		c.tellText(now, Violation, c.cur, fmt.Sprintf("a resume of %s was answered with session.started of %s, resumed %v", c.id, m.SessionID, m.Resumed))
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
		c.cur.taken = false // the snapshot tells
	}
	c.sign, c.word, c.news = now, now, true
	if c.mic != nil {
		c.saysAgain(now, m)
	}
	c.observer.Happened(now, Event{Kind: CameBack, X: c.cur, Returned: &Returned{
		Act: w.act, Away: now.Sub(w.lost), Took: now.Sub(w.asked), Tries: w.tries, Snapshot: m.Snapshot,
	}})
	if w.token != "" {
		w.settling = c.ping(now)
	}
}

// saysAgain sends what a gateway asks for again that has taken the session over, and otherwise the
// newest of what was lost with the connection and of what was recorded without one.
func (c *Conversation) saysAgain(now time.Time, m *protocol.SessionStarted) {
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

// hearOfWay takes a message about the connection.
func (c *Conversation) hearOfWay(now time.Time, m protocol.ServerMessage) {
	switch m := m.(type) {
	case *protocol.Pong:
		c.hearPong(now, m)
	case *protocol.SessionMoving:
		c.hearMoving(now)
	}
}

// hearPong takes the answer to a ping.
func (c *Conversation) hearPong(now time.Time, m *protocol.Pong) {
	if c.way.settling == 0 || m.T != c.way.settling {
		return
	}
	c.way.settling = 0
	if missing := c.order.settle(m.Seq); missing > 0 {
		c.observer.Happened(now, Event{Kind: MissedMessages, X: c.cur, N: missing, Text: fmt.Sprintf("messages that were missed and have not come again: %d", missing)})
	}
	if c.way.snapshot {
		c.player.caughtUp(now)
		c.endDoubtful(now)
	}
	c.answerAgain(now)
	switch x := c.cur; {
	case x == nil || x.returns == c.way.returns:
		// Nothing of it can have been lost: it began on this connection.
	case c.unstopped(x):
		c.send(&protocol.Interrupt{})
		x.Onset, x.Spoken, c.word, c.sign = now, now, now, now
	case c.unheard(x):
		c.send(&protocol.InputText{Text: x.Words.Text})
		x.Spoken, c.word, c.sign = now, now, now
	case x.Turn.Act == Say && c.way.again && x.Bytes == 0:
		// It is said again, and brings its answer.
	case c.way.snapshot && len(c.opened) == 0 && !now.Before(x.Spoken):
		x.Completed = true // its end was among the messages that are lost
	}
	c.way.snapshot = false
}

// unstopped reports whether the stop button of an exchange that began on an earlier connection was lost
// with it: what it was to stop still sounds.
func (c *Conversation) unstopped(x *Exchange) bool {
	return x.Turn.Act == Stop && !x.Settled && x.Flushed.IsZero() && !c.player.idle()
}

// unheard reports whether the text of an exchange that began on an earlier connection was lost with it, or
// with the gateway: nothing that came since tells of it.
func (c *Conversation) unheard(x *Exchange) bool {
	return x.Turn.Act == Type && x.Index >= 0 && !x.taken && x.Bytes == 0
}
