// Package voice is the conversation engine of the command-line clients. It speaks recordings in real time, types,
// interrupts, answers tools' questions, plays the answers on a clock instead of a loudspeaker, and reports the audio it
// played.
//
// A [Conversation] decides what to say and when. It has no clock, socket or goroutine: it takes the time and incoming
// messages, and returns the messages to send. [Run] runs one on a connection. An [Observer] receives every event. A
// [Library] decodes each recording once, for all conversations, and finds the user's speech in it.
package voice

import (
	"maps"
	"slices"
	"time"

	"voicegw/protocol"
)

// Waits of a conversation, in addition to those of its turns.
const (
	// leadIn is the silence before the first turn. By then a greeting has begun and the model has heard the background.
	leadIn = 300 * time.Millisecond
	// quiet is how long after the last message about turns an exchange is over. An approval is followed by several
	// messages.
	quiet = 50 * time.Millisecond
	// earlyTime limits the wait after an answer that came before the turn's end. Every model waits less than this for
	// more speech.
	earlyTime     = 5 * time.Second
	flushTime     = 5 * time.Second
	overtime      = time.Minute
	longestAnswer = 10 * time.Minute
	maxItems      = 64
)

type phase int

const (
	phaseStarting phase = iota // waiting for session.started
	phasePending               // waiting for the turn of the question asked in text
	phaseResting               // between turns
	phaseTalking               // speaking, or waiting for the answer
	phaseLeaving               // session.end was sent
	phaseOver
)

// Conversation decides what to say and when. Every method is passed the current time. It is not safe for concurrent
// use.
type Conversation struct {
	// Fixed after New.
	o        Options
	observer Observer

	script    script
	turns     gatewayTurns
	questions questions
	input     input
	player    *player
	conn      connection
	outages   outages

	phase      phase
	phaseSince time.Time
	restTime   time.Duration // duration of phaseResting
	restSince  time.Time
	cur        *Exchange
	// news: something arrived that may make an action due.
	news            bool
	lastActivity    time.Time // when audio or a message about a turn last arrived
	lastTurnMessage time.Time // when a message about a turn last arrived

	ended     string // reason of session.ended
	lastError *protocol.Error
	leftAt    time.Time // when session.end was sent
	done      bool
}

// New begins a conversation. Its first message is ready to send.
func New(o Options, observer Observer, now time.Time) *Conversation {
	c := &Conversation{
		o: o, observer: observer, phaseSince: now, lastActivity: now, script: script{turns: o.Turns, pass: 1},
		turns:   gatewayTurns{exchanges: map[int]*Exchange{}, open: map[int]bool{}},
		outages: outages{slices.Clone(o.Outages)},
	}
	c.conn = connection{o: &c.o, emit: c.emit}
	c.questions = questions{o: &c.o, observer: observer, send: c.conn.send}
	c.input = input{o: &c.o, observer: observer, send: c.conn.send}
	c.player = newPlayer(o.Start.OutputRate, o.Buffers, o.Reporting, observer, c.conn.report)
	c.conn.send(&c.o.Start)
	return c
}

// Done reports whether the conversation is complete: all turns finished, the time is up, or the model ended the session
// as expected.
func (c *Conversation) Done() bool { return c.done }

// Current returns the exchange in progress; nil before the first.
func (c *Conversation) Current() *Exchange { return c.cur }

// Started reports whether the session began or failed to begin.
func (c *Conversation) Started() bool { return c.phase != phaseStarting }

// SessionID is the session's id; empty before the session begins.
func (c *Conversation) SessionID() string { return c.conn.sessionID }

// Ended is the reason of session.ended; empty before it.
func (c *Conversation) Ended() string { return c.ended }

// LeftAt is when the client sent session.end; zero if it did not.
func (c *Conversation) LeftAt() time.Time { return c.leftAt }

// LastError returns the gateway's newest error message, or nil.
func (c *Conversation) LastError() *protocol.Error { return c.lastError }

// Open returns the item with this id if it is still being played, or nil.
func (c *Conversation) Open(id string) *Item { return find(c.player.queue, id) }

// Incoming returns the item that audio frames belong to, or nil.
func (c *Conversation) Incoming() *Item { return c.player.incoming() }

// OfTurn returns the exchange answered by a turn of the gateway. It is nil for a greeting and for a turn that the
// gateway has not begun.
func (c *Conversation) OfTurn(turn int) *Exchange { return c.turns.exchanges[turn] }

// About returns the exchange of a message that names a turn of the gateway: the current one if the gateway has not
// begun that turn or names none. It is nil for a greeting, and after Forget.
func (c *Conversation) About(turn int) *Exchange {
	x := c.turns.exchanges[turn]
	if x == nil && (turn == 0 || turn > c.turns.newest) {
		return c.cur
	}
	return x
}

// Forget drops the state of an exchange. Late messages then belong to no exchange.
func (c *Conversation) Forget(x *Exchange) {
	maps.DeleteFunc(c.turns.exchanges, func(_ int, of *Exchange) bool { return of == x })
}

// Leave hangs up.
func (c *Conversation) Leave(now time.Time) {
	if c.phase >= phaseLeaving {
		return
	}
	if c.conn.sessionID == "" {
		c.enter(now, phaseOver)
		return
	}
	c.cur.settle(now, c.observer, Event{Kind: CutOff})
	c.conn.send(&protocol.End{})
	c.enter(now, phaseLeaving)
	c.leftAt = now
}

func (c *Conversation) answer(now time.Time, line string) {
	if c.phase < phaseLeaving {
		c.questions.take(now, line)
	}
}

func (c *Conversation) emit(now time.Time, e Event) {
	e.X = c.cur
	c.observer.Happened(now, e)
}

func (c *Conversation) enter(now time.Time, p phase) {
	c.phase, c.phaseSince = p, now
	c.conn.closing = p >= phaseLeaving
}

func (c *Conversation) tick(now time.Time) {
	c.player.advance(now)
	if c.player.sounding() {
		c.lastActivity = now
	}
	c.questions.tick(now)
	if c.phase != phaseOver {
		if err := c.conn.tick(now); err != nil {
			c.giveUp(now, err)
		}
	}
	if c.conn.steady() {
		if o, ok := c.outages.take(now, c.conn.began); ok {
			c.disconnect(now, o.Act, o.Away)
		}
	}
	if end := c.o.end(); !end.IsZero() && !now.Before(end) {
		c.done = c.done || c.o.HangUp
		c.Leave(now)
	}
	// An action can make the next one due: the end of a turn, and a rest of no time.
	for range 8 {
		phase, cur, next := c.phase, c.cur, c.script.next
		c.step(now)
		if c.phase == phase && c.cur == cur && c.script.next == next {
			return
		}
	}
}

func (c *Conversation) step(now time.Time) {
	elapsed := now.Sub(c.phaseSince)
	switch c.phase {
	case phaseStarting:
		if elapsed >= c.o.ConnectTime {
			c.observer.Happened(now, Event{Kind: Refused, Text: "no session.started within " + c.o.ConnectTime.String()})
			c.enter(now, phaseOver)
		}
	case phasePending:
		if elapsed >= c.o.PendingTime {
			c.cur.fail(now, c.observer, Event{Kind: NothingPending})
			c.rest(now)
		}
	case phaseResting:
		c.awaitSilence(now)
	case phaseTalking:
		c.listen(now)
	case phaseLeaving:
		if elapsed >= c.o.GoodbyeTime {
			missing := "the connection was not closed"
			if c.ended == "" {
				missing = "no session.ended arrived"
			}
			c.observer.Happened(now, Event{Kind: Lost, Text: missing + " within " + c.o.GoodbyeTime.String() + " of session.end"})
			c.enter(now, phaseOver)
		}
	}
}

// wake returns when tick or frame is due next, after now; zero for never. Call both first.
func (c *Conversation) wake(now time.Time) time.Time {
	var at time.Time
	consider := func(t time.Time) {
		if t.After(now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	consider(c.player.next())
	consider(c.o.end())
	consider(c.conn.next())
	for i := range c.outages.list {
		consider(c.outages.at(i, c.conn.began))
	}
	if c.input.mic != nil && c.sendsAudio() {
		consider(c.input.mic.due())
	}
	for _, q := range c.questions.open {
		consider(q.at)
		consider(q.until)
	}
	switch c.phase {
	case phaseStarting:
		consider(c.phaseSince.Add(c.o.ConnectTime))
	case phasePending:
		consider(c.phaseSince.Add(c.o.PendingTime))
	case phaseResting:
		consider(c.phaseSince.Add(c.restTime))
	case phaseTalking:
		x := c.cur
		consider(x.Onset)
		consider(x.Spoken)
		consider(c.script.interruptionAt(x))
		consider(c.script.disconnectAt(x))
		consider(c.lastTurnMessage.Add(quiet))
		consider(x.Onset.Add(flushTime))
		consider(later(c.lastActivity, x.Spoken).Add(earlyTime))
		consider(later(c.lastActivity, x.Spoken).Add(x.Turn.Patience))
	case phaseLeaving:
		consider(c.phaseSince.Add(c.o.GoodbyeTime))
	}
	return at
}

// frame returns the next frame if it is due, and its due time.
func (c *Conversation) frame(now time.Time) (pcm []byte, due time.Time, ok bool) {
	if !c.sendsAudio() {
		return nil, due, false
	}
	return c.input.frame(now)
}

func (c *Conversation) sendsAudio() bool { return c.phase < phaseLeaving && c.conn.state == online }
