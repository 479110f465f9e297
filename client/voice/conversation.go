package voice

import (
	"slices"
	"time"

	"voicegw/client/speech"
	"voicegw/protocol"
)

// The waits of a conversation, beside those of its turns.
const (
	// leadIn is the silence before the first turn: a gateway that greets has begun by then,
	// and the model has heard the background.
	leadIn = 300 * time.Millisecond
	// quiet is how long after the last word about turns an exchange is over: what follows
	// from an approval comes in several messages.
	quiet = 50 * time.Millisecond
	// earlyTime is how long the gateway may take to go on after it has answered a turn
	// before its end: longer than any model waits for more speech.
	earlyTime = 5 * time.Second
	// flushTime is how long a flush may take after the stop button.
	flushTime = 5 * time.Second
	// overtime is how long a conversation may take to finish a turn when its time is up.
	overtime = time.Minute
	// longestAnswer bounds a turn, however much is said.
	longestAnswer = 10 * time.Minute
	// maxItems are answers of one conversation that are open at once.
	maxItems = 64
	// behind is how late a frame may be before it, and those after it, are thrown away.
	behind = time.Second
)

// phase is the stage of a conversation.
type phase int

const (
	phaseStarting phase = iota // waiting for session.started
	phasePending               // waiting for the turn of what was asked before
	phaseResting               // between turns
	phaseTalking               // a turn is said, or answered
	phaseLeaving               // session.end is sent
	phaseOver
)

// Conversation decides what to say and when. Every method takes the time. It is not safe for
// concurrent use.
type Conversation struct {
	// Fixed after New.
	o        Options
	observer Observer

	out    []protocol.ClientMessage // to be sent while online
	wishes []wish
	// news means that something has arrived which may make an action due at once.
	news bool

	phase      phase
	phaseSince time.Time
	rest       time.Duration // how long phaseResting lasts
	restSince  time.Time
	next       int // index of the turn after cur
	pass       int // through the turns, from 1
	count      int // turns so far
	cur        *Exchange
	mic        *microphone
	player     *player
	turns      map[int]*Exchange // of the gateway, by number, as far as they are not forgotten
	lastTurn   int               // the newest of them
	opened     map[int]bool      // turns of the gateway that have not ended
	lastEnded  int               // the number of the last turn that has ended
	sign       time.Time         // of life: when something was heard, or said about a turn
	word       time.Time         // when something was said about turns
	questions  []question
	nobody     bool // no person answers questions any more

	way     way
	order   order
	spoken  spoken
	outages []int // how often each outage has come or was passed over

	id        string // of the session
	ended     string // the reason of session.ended
	lastError *protocol.Error
	leftAt    time.Time // session.end was sent
	done      bool
	leftBy    bool
}

// New begins a conversation at that time: its first message is ready to be sent.
func New(o Options, observer Observer, now time.Time) *Conversation {
	c := &Conversation{
		o: o, observer: observer, phaseSince: now, sign: now, pass: 1, turns: map[int]*Exchange{}, opened: map[int]bool{},
		outages: make([]int, len(o.Outages)),
	}
	c.player = newPlayer(o.Start.OutputRate, o.Buffers, o.Reporting, observer, c.report)
	c.send(&c.o.Start)
	return c
}

// Done reports whether the conversation is complete: all turns were taken, or the time is up, or the
// model has ended the session as expected.
func (c *Conversation) Done() bool { return c.done || c.leftBy }

// Over reports whether nothing more will happen.
func (c *Conversation) Over() bool { return c.phase == phaseOver }

// Current returns the exchange that is being said or answered; nil before the first.
func (c *Conversation) Current() *Exchange { return c.cur }

// Started reports whether the session has begun, or has failed to begin.
func (c *Conversation) Started() bool { return c.phase != phaseStarting }

// SessionID is the gateway's name of the session; empty before it has begun.
func (c *Conversation) SessionID() string { return c.id }

// Ended is the reason of session.ended; empty before.
func (c *Conversation) Ended() string { return c.ended }

// LeftAt is when this side has hung up with session.end; zero if it has not.
func (c *Conversation) LeftAt() time.Time { return c.leftAt }

// LastError returns the gateway's newest error message; nil before the first.
func (c *Conversation) LastError() *protocol.Error { return c.lastError }

// Open returns the item with that id that is still to be played; nil without such an item.
func (c *Conversation) Open(id string) *Item { return c.player.find(id) }

// Incoming returns the item whose audio is coming; nil if no audio is.
func (c *Conversation) Incoming() *Item { return c.player.incoming() }

// OfTurn returns the exchange that a turn of the gateway answers; nil for a greeting, and for a turn
// that the gateway has not begun yet.
func (c *Conversation) OfTurn(turn int) *Exchange { return c.turns[turn] }

// About returns the exchange to which something in a turn of the gateway belongs: the current one if
// the gateway has not begun that turn yet or does not name it; nil for a greeting, and for anything
// after Forget.
func (c *Conversation) About(turn int) *Exchange {
	if x := c.turns[turn]; x != nil {
		return x
	}
	if turn != 0 && turn <= c.lastTurn {
		return nil
	}
	return c.cur
}

// Forget drops the state of an exchange: whatever arrives late for it belongs to no exchange.
func (c *Conversation) Forget(x *Exchange) {
	for turn, of := range c.turns {
		if of == x {
			delete(c.turns, turn)
		}
	}
}

func (c *Conversation) send(m protocol.ClientMessage) { c.out = append(c.out, m) }

// press tells the gateway that the push-to-talk button was pressed or released.
func (c *Conversation) press(m *protocol.InputActivity) {
	c.send(m)
	c.spoken.press(m)
}

// report tells the gateway what was heard, and what has come, so that it need not keep that. What was
// heard without a connection is told by the next report.
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

// tick does everything that is due.
func (c *Conversation) tick(now time.Time) {
	c.player.advance(now)
	if c.player.sounding() {
		c.sign = now
	}
	c.tickQuestions(now)
	c.tickWay(now)
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

// step does what is due in the current phase.
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
		c.takeRest(now)
	case phaseTalking:
		c.listen(now)
	case phaseLeaving:
		if now.Sub(c.phaseSince) >= c.o.GoodbyeTime {
			c.forsaken(now)
		}
	case phaseOver:
	}
}

// forsaken ends the conversation without the gateway's goodbye.
func (c *Conversation) forsaken(now time.Time) {
	missing := "the connection was not closed"
	if c.ended == "" {
		missing = "no session.ended came"
	}
	c.tellText(now, Lost, nil, missing+" within "+c.o.GoodbyeTime.String()+" of session.end")
	c.enter(now, phaseOver)
}

// takeRest waits for silence, and then goes on with the turns.
func (c *Conversation) takeRest(now time.Time) {
	sounds := len(c.opened) > 0 || !c.player.idle()
	if c.Away() {
		c.phaseSince = now // nobody begins to speak while nobody can hear it
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

// waitsForSilence says whether the next turn begins in silence.
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

// restFor begins a rest, which the pause of the next turn makes longer.
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

// say begins the next turn. interrupts is what it interrupts; nil for nothing.
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

// speak begins a recording.
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

// listen goes on with the turns once the current one is over and has been said to its end:
// what remains of a recording is silence, and is let out before the next turn.
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

// tellSpeech says where the speech of a turn has begun and ended.
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

// await looks whether a turn is over, is to be interrupted, or has been waited for long
// enough.
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
		c.settleFailed(now, x, Event{Kind: Failed, Text: "the turn ended without any audio"})
	case c.asked() >= 0:
		// A person's answer is awaited.
	case now.Sub(later(c.sign, x.Spoken)) >= x.Turn.Patience || now.Sub(x.Spoken) >= longestAnswer:
		x.Settled = true
		c.tell(now, Stuck, x)
		c.Leave(now)
	}
}

// fulfilled says whether what the turn waits for has come.
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
		return true // what was answered early was all that the model has heard
	}
	return x.Completed && x.Bytes > 0 && c.settles(now)
}

// settles says whether all is said and heard.
func (c *Conversation) settles(now time.Time) bool {
	return len(c.opened) == 0 && c.player.idle() && len(c.questions) == 0 && now.Sub(c.word) >= quiet
}

// afterStop waits for what the stop button does.
func (c *Conversation) afterStop(now time.Time, x *Exchange) {
	switch {
	case !x.Flushed.IsZero() || c.player.idle() && len(c.opened) == 0:
		c.settle(now, x, Answered)
	case now.Sub(x.Onset) >= flushTime:
		c.settleFailed(now, x, Event{Kind: Failed, Text: "no audio.flush came within " + flushTime.String() + " of the stop button"})
	}
}

// interruptionAt is when the next turn interrupts the answer to this one; zero for never.
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

// interrupt begins the next turn over the answer to the current one.
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

// settleFailed is settle for a turn that failed, which the script may want.
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

// cutOff settles a turn that gets no answer any more.
func (c *Conversation) cutOff(now time.Time) {
	if x := c.cur; x != nil {
		c.settle(now, x, Cut)
	}
}

// Finish is called once, after everything else: what was not played to its end is over.
func (c *Conversation) Finish(now time.Time) { c.player.close(now) }

// has says whether a name is among others; note adds it once.
func note(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}
