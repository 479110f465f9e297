package voice

import (
	"slices"
	"time"

	"voicegw/client/speech"
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
	earlyTime = 5 * time.Second
	// flushTime limits the wait for a flush after the stop button.
	flushTime = 5 * time.Second
	// overtime is the time to finish a turn after the conversation's end.
	overtime = time.Minute
	// longestAnswer limits a turn.
	longestAnswer = 10 * time.Minute
	// maxItems limits the open items of a conversation.
	maxItems = 64
	// behind is the lateness at which a frame and those after it are dropped.
	behind = time.Second
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

	out      []protocol.ClientMessage // to be sent while online
	requests []connRequest
	// news: something arrived that may make an action due.
	news bool

	phase      phase
	phaseSince time.Time
	rest       time.Duration // duration of phaseResting
	restSince  time.Time
	next       int // index of the turn after cur
	pass       int // through the turns, from 1
	count      int // turns so far
	cur        *Exchange
	mic        *microphone
	player     *player
	turns      map[int]*Exchange // the gateway's turns by number, unless forgotten
	lastTurn   int               // newest turn of the gateway
	opened     map[int]bool      // open turns of the gateway
	lastEnded  int               // number of the last turn that ended
	sign       time.Time         // when audio or a message about a turn last arrived
	word       time.Time         // when a message about a turn last arrived
	questions  []question
	unattended bool // no person answers questions any longer

	way     way
	order   order
	spoken  spoken
	outages []int // how often each outage occurred or was skipped

	id        string // session id
	ended     string // reason of session.ended
	lastError *protocol.Error
	leftAt    time.Time // when session.end was sent
	done      bool
	leftBy    bool
}

// New begins a conversation. Its first message is ready to send.
func New(o Options, observer Observer, now time.Time) *Conversation {
	c := &Conversation{
		o: o, observer: observer, phaseSince: now, sign: now, pass: 1, turns: map[int]*Exchange{}, opened: map[int]bool{},
		outages: make([]int, len(o.Outages)),
	}
	c.player = newPlayer(o.Start.OutputRate, o.Buffers, o.Reporting, observer, c.report)
	c.send(&c.o.Start)
	return c
}

// Done reports whether the conversation is complete: all turns finished, the time is up, or the model ended the session
// as expected.
func (c *Conversation) Done() bool { return c.done || c.leftBy }

// Over reports whether nothing more will happen.
func (c *Conversation) Over() bool { return c.phase == phaseOver }

// Current returns the exchange in progress; nil before the first.
func (c *Conversation) Current() *Exchange { return c.cur }

// Started reports whether the session began or failed to begin.
func (c *Conversation) Started() bool { return c.phase != phaseStarting }

// SessionID is the session's id; empty before the session begins.
func (c *Conversation) SessionID() string { return c.id }

// Ended is the reason of session.ended; empty before it.
func (c *Conversation) Ended() string { return c.ended }

// LeftAt is when the client sent session.end; zero if it did not.
func (c *Conversation) LeftAt() time.Time { return c.leftAt }

// LastError returns the gateway's newest error message, or nil.
func (c *Conversation) LastError() *protocol.Error { return c.lastError }

// Open returns the item with this id if it is still being played, or nil.
func (c *Conversation) Open(id string) *Item { return c.player.find(id) }

// Incoming returns the item that audio frames belong to, or nil.
func (c *Conversation) Incoming() *Item { return c.player.incoming() }

// OfTurn returns the exchange answered by a turn of the gateway. It is nil for a greeting and for a turn that the
// gateway has not begun.
func (c *Conversation) OfTurn(turn int) *Exchange { return c.turns[turn] }

// About returns the exchange of a message that names a turn of the gateway: the current one if the gateway has not
// begun that turn or names none. It is nil for a greeting, and after Forget.
func (c *Conversation) About(turn int) *Exchange {
	if x := c.turns[turn]; x != nil {
		return x
	}
	if turn != 0 && turn <= c.lastTurn {
		return nil
	}
	return c.cur
}

// Forget drops the state of an exchange. Late messages then belong to no exchange.
func (c *Conversation) Forget(x *Exchange) {
	for turn, of := range c.turns {
		if of == x {
			delete(c.turns, turn)
		}
	}
}

func (c *Conversation) send(m protocol.ClientMessage) { c.out = append(c.out, m) }

// press sends the state of the push-to-talk button.
func (c *Conversation) press(m *protocol.InputActivity) {
	c.send(m)
	c.spoken.press(m)
}

// report acknowledges messages and played audio, so that the gateway can drop them. Without a connection, the next
// report includes them.
func (c *Conversation) report(p protocol.Playback, received int64) {
	if c.way.token != "" {
		p.ReceivedMS, p.Seq = received, c.order.highest
	}
	if c.way.state == online || p.Done {
		c.send(&p)
	}
}

func (c *Conversation) tell(now time.Time, kind Kind, x *Exchange) {
	c.observer.Happened(now, Event{Kind: kind, X: x})
}

func (c *Conversation) tellText(now time.Time, kind Kind, x *Exchange, text string) {
	c.observer.Happened(now, Event{Kind: kind, X: x, Text: text})
}

func (c *Conversation) enter(now time.Time, p phase) { c.phase, c.phaseSince = p, now }

// tick performs every action that is due.
func (c *Conversation) tick(now time.Time) {
	c.player.advance(now)
	if c.player.sounding() {
		c.sign = now
	}
	c.tickQuestions(now)
	c.tickConnection(now)
	c.tickOutages(now)
	if end := c.o.end(); !end.IsZero() && !now.Before(end) {
		c.done = c.done || c.o.HangUp
		c.Leave(now)
	}
	// One thing may lead to the next at once: a turn that is over to a rest of no time.
	for range 8 {
		phase, cur, next := c.phase, c.cur, c.next
		c.step(now)
		if c.phase == phase && c.cur == cur && c.next == next {
			return
		}
	}
}

// step performs the due action of the current phase.
func (c *Conversation) step(now time.Time) {
	switch c.phase {
	case phaseStarting:
		if now.Sub(c.phaseSince) >= c.o.ConnectTime {
			c.tellText(now, Refused, nil, "no session.started within "+c.o.ConnectTime.String())
			c.enter(now, phaseOver)
		}
	case phasePending:
		if now.Sub(c.phaseSince) >= c.o.PendingTime {
			c.settleFailed(now, c.cur, Event{Kind: NothingPending})
			c.restFor(now, 0)
		}
	case phaseResting:
		c.awaitSilence(now)
	case phaseTalking:
		c.listen(now)
	case phaseLeaving:
		if now.Sub(c.phaseSince) >= c.o.GoodbyeTime {
			c.abandon(now)
		}
	case phaseOver:
	}
}

// abandon ends the conversation without session.ended.
func (c *Conversation) abandon(now time.Time) {
	missing := "the connection was not closed"
	if c.ended == "" {
		missing = "no session.ended arrived"
	}
	c.tellText(now, Lost, nil, missing+" within "+c.o.GoodbyeTime.String()+" of session.end")
	c.enter(now, phaseOver)
}

// awaitSilence waits for silence and then continues with the turns.
func (c *Conversation) awaitSilence(now time.Time) {
	sounds := len(c.opened) > 0 || !c.player.idle()
	if c.Away() {
		c.phaseSince = now // without a connection no turn begins
		return
	}
	if c.waitsForSilence() && sounds && now.Sub(c.sign) < c.o.Patience && now.Sub(c.restSince) < c.rest+overtime {
		c.phaseSince = now // a greeting, or the rest of an answer
		return
	}
	if now.Sub(c.phaseSince) < c.rest {
		return
	}
	c.goOn(now)
}

// waitsForSilence reports whether the next turn begins in silence.
func (c *Conversation) waitsForSilence() bool {
	if c.cur == nil {
		return true
	}
	switch c.cur.Turn.WaitFor {
	case ForFirstAudio, ForNothing, ForTool:
		return false
	default:
		return true
	}
}

// goOn begins the next turn, or hangs up.
func (c *Conversation) goOn(now time.Time) {
	if !c.o.Until.IsZero() && !now.Before(c.o.Until) || c.o.Until.IsZero() && c.next == len(c.o.Turns) {
		c.done = true
		c.Leave(now)
		return
	}
	if c.next == len(c.o.Turns) {
		c.next = 0
		c.pass++
	}
	switch t := &c.o.Turns[c.next]; t.Act {
	case Wait:
		c.next++
		c.restFor(now, t.Wait)
	case Drop, Reload, Roam:
		c.next++
		c.cut(now, t.Act, t.Wait)
		c.restFor(now, 0)
	case Stop:
		// The answer that it would have stopped is over.
		c.next++
		c.tell(now, Missed, nil)
		c.restFor(now, 0)
	default:
		c.say(now, nil)
	}
}

// restFor begins a rest, which the next turn's pause can lengthen.
func (c *Conversation) restFor(now time.Time, d time.Duration) {
	c.rest = d
	switch {
	case c.next == len(c.o.Turns):
		c.rest += DefaultPause // the last words may still be on their way
	case c.o.Turns[c.next].Act != Wait:
		c.rest += c.o.Turns[c.next].Pause
	}
	c.restSince = now
	c.enter(now, phaseResting)
}

// say begins the next turn. interrupts is the exchange that it interrupts, or nil.
func (c *Conversation) say(now time.Time, interrupts *Exchange) {
	t := &c.o.Turns[c.next]
	c.count++
	if t.Interrupts && interrupts == nil {
		c.tell(now, Missed, nil)
	}
	x := &Exchange{Turn: t, Number: c.count, Index: c.next, Interrupts: interrupts}
	c.next++
	if t.Act != Stop {
		x.Words = c.o.Words(x.Index, c.count, c.pass)
	}
	c.begin(now, x)
	switch t.Act {
	case Say:
		c.speak(now, x, x.Words.Recording)
	case Type:
		c.send(&protocol.InputText{Text: x.Words.Text})
		x.Onset, x.Spoken, x.Known = now, now, now
		c.tell(now, Speaking, x)
	case Stop:
		c.send(&protocol.Interrupt{})
		x.Onset, x.Spoken, x.Known = now, now, now
	case Wait, Drop, Reload, Roam: // goOn has seen to them
	}
	c.enter(now, phaseTalking)
}

func (c *Conversation) speak(now time.Time, x *Exchange, r *speech.Recording) {
	if c.o.PushToTalk {
		c.press(&protocol.InputActivity{Active: true})
	}
	start := c.mic.say(now, r)
	x.Onset, x.Spoken = start.Add(r.Onset()), start.Add(r.End())
}

// begin makes an exchange the current one.
func (c *Conversation) begin(now time.Time, x *Exchange) {
	c.cur, c.sign, c.word = x, now, now
	x.returns = c.way.returns
	c.tell(now, Began, x)
}

// listen continues with the turns once the current exchange is over and its recording was sent to the end. The rest of
// the recording is silence.
func (c *Conversation) listen(now time.Time) {
	x := c.cur
	c.tellSpeech(now, x)
	if c.Away() {
		return // what ends the turn comes later
	}
	c.tickSteps(now)
	c.await(now, x)
	if c.cur == x && c.phase == phaseTalking && x.Settled && (c.mic == nil || c.mic.idle()) {
		c.restFor(now, 0)
	}
}

// tellSpeech reports the beginning and the end of a turn's speech.
func (c *Conversation) tellSpeech(now time.Time, x *Exchange) {
	if x.Turn.Act != Say {
		return
	}
	if x.told == 0 && !now.Before(x.Onset) {
		x.told = 1
		c.tell(now, Speaking, x)
	}
	if x.told == 1 && !now.Before(x.Spoken) {
		x.told = 2
		c.sign = now
		c.player.adopt(x)
		c.tell(now, Spoken, x)
	}
}

// await checks whether a turn is over, is to be interrupted, or timed out.
func (c *Conversation) await(now time.Time, x *Exchange) {
	switch {
	case c.interruptionDue(now):
		c.interrupt(now)
	case x.Settled:
	case now.Before(x.Spoken):
	case x.Turn.Act == Stop:
		c.afterStop(now, x)
	case c.fulfilled(now, x):
		c.settle(now, x, Answered)
	case x.failed && c.settles(now):
		c.settleFailed(now, x, Event{Kind: Failed, Text: "the turn failed", Told: c.lastError})
	case x.Completed && x.Bytes == 0 && c.settles(now):
		c.settleFailed(now, x, Event{Kind: Failed, Text: "the turn ended without audio"})
	case c.asked() >= 0:
		// A person's answer is awaited.
	case now.Sub(later(c.sign, x.Spoken)) >= x.Turn.Patience || now.Sub(x.Spoken) >= longestAnswer:
		x.Settled = true
		c.tell(now, Stuck, x)
		c.Leave(now)
	}
}

// fulfilled reports whether the turn's awaited event happened.
func (c *Conversation) fulfilled(now time.Time, x *Exchange) bool {
	switch x.Turn.WaitFor {
	case ForNothing:
		return true
	case ForFirstAudio:
		return !x.First.IsZero()
	case ForTool:
		return x.toolEnded
	case ForEnd:
		return false // Lost sees to it
	case ForAnswer:
	}
	if x.earlyOver && len(c.opened) == 0 && now.Sub(later(c.sign, x.Spoken)) >= earlyTime {
		return true // the early answer covered all the model heard
	}
	return x.Completed && x.Bytes > 0 && c.settles(now)
}

// settles reports whether everything was said and heard.
func (c *Conversation) settles(now time.Time) bool {
	return len(c.opened) == 0 && c.player.idle() && len(c.questions) == 0 && now.Sub(c.word) >= quiet
}

// afterStop waits for the effect of the stop button.
func (c *Conversation) afterStop(now time.Time, x *Exchange) {
	switch {
	case !x.Flushed.IsZero() || c.player.idle() && len(c.opened) == 0:
		c.settle(now, x, Answered)
	case now.Sub(x.Onset) >= flushTime:
		c.settleFailed(now, x, Event{Kind: Failed, Text: "no audio.flush within " + flushTime.String() + " of the stop button"})
	}
}

// interruptionAt is when the next turn interrupts this answer; zero for never.
func (c *Conversation) interruptionAt() time.Time {
	if c.next == len(c.o.Turns) || !c.o.Turns[c.next].Interrupts || c.cur.First.IsZero() || c.cur.Settled {
		return time.Time{}
	}
	return c.cur.First.Add(c.o.Turns[c.next].InterruptAfter)
}

func (c *Conversation) interruptionDue(now time.Time) bool {
	at := c.interruptionAt()
	return !at.IsZero() && !now.Before(at) && c.player.plays(c.cur) && (c.mic == nil || c.mic.idle())
}

// interrupt begins the next turn over the current answer.
func (c *Conversation) interrupt(now time.Time) {
	x := c.cur
	c.settle(now, x, Interrupted)
	c.say(now, x)
}

// settle decides the outcome of a turn.
func (c *Conversation) settle(now time.Time, x *Exchange, as Kind) {
	if !x.Settled {
		x.Settled = true
		c.tell(now, as, x)
	}
}

// settleFailed settles a failed turn; the script may expect the failure.
func (c *Conversation) settleFailed(now time.Time, x *Exchange, e Event) {
	switch {
	case x.expectsError():
		c.settle(now, x, Answered)
	case !x.Settled:
		x.Settled, e.X = true, x
		c.observer.Happened(now, e)
	}
}

// Leave hangs up.
func (c *Conversation) Leave(now time.Time) {
	if c.phase >= phaseLeaving {
		return
	}
	if c.id == "" {
		c.enter(now, phaseOver)
		return
	}
	c.cutOff(now)
	c.send(&protocol.End{})
	c.enter(now, phaseLeaving)
	c.leftAt = now
}

// cutOff settles a turn that will get no answer.
func (c *Conversation) cutOff(now time.Time) {
	if x := c.cur; x != nil {
		c.settle(now, x, Cut)
	}
}

// Finish must be called once, last. It closes items that were not played to the end.
func (c *Conversation) Finish(now time.Time) { c.player.close(now) }

// has reports whether names contains name; note adds it if it is missing.
func note(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}
