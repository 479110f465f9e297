package talk

import (
	"fmt"
	"time"

	"voicegw/protocol"
)

// The waits of a conversation, beside Options.Patience.
const (
	// leadIn is the silence before the first turn: a gateway that greets has begun
	// by then, and the provider has heard the background.
	leadIn = 300 * time.Millisecond
	// pause is the silence between an answer and the next turn.
	pause = 300 * time.Millisecond
	// earlyTime is how long the gateway may take to go on after it has answered a
	// turn before its end: longer than any model waits for more speech.
	earlyTime = 5 * time.Second
	// pendingTime is how long a session may take to begin to answer what was asked
	// before; after it nothing was.
	pendingTime = 2 * time.Second
	// goodbyeTime is how long the gateway may take to end the session.
	goodbyeTime = 3 * time.Second
)

// phase is where a conversation stands.
type phase int

const (
	phaseStarting  phase = iota // waiting for session.started
	phasePending                // waiting for the turn of what was asked before
	phaseResting                // between turns, or before the first
	phaseSaying                 // sending a turn
	phaseListening              // waiting for its answer
	phaseLeaving                // session.end is sent
	phaseOver
)

// conversation decides what to say and when. It has no clock: every method is
// told the time. What is to be sent goes through send and sendAudio.
type conversation struct {
	// Fixed after newConversation.
	options   Options
	began     time.Time
	send      func(protocol.ClientMessage)
	sendAudio func(frame []byte) // valid until it returns

	phase      phase
	phaseSince time.Time
	script     []*exchange // all that will be said; an interruption may add one
	current    *exchange   // the one that is being said or answered
	next       int         // index in script of the one after it
	mic        *microphone // nil until the session has started, and in typed conversations
	player     *player
	incoming   *item // what binary frames belong to; nil for nothing
	gwTurns    map[int]*exchange
	gwOpen     int // turns of the gateway that have not ended
	lastHeard  time.Time
	questions  []pending // of tools, oldest first

	started    protocol.SessionStarted
	staleBytes int64
	ended      string // the reason of session.ended
	handback   *protocol.Handback
	lastError  string // the newest error message of the gateway
	leftSelf   bool   // this side hung up
	err        error
}

func newConversation(o Options, now time.Time, send func(protocol.ClientMessage), sendAudio func([]byte)) (*conversation, error) {
	c := &conversation{
		options: o, began: now, send: send, sendAudio: sendAudio,
		phaseSince: now, lastHeard: now, gwTurns: map[int]*exchange{},
	}
	if o.Ticket != "" {
		c.script = append(c.script, &exchange{pending: true})
	}
	for i, turn := range o.Turns {
		x, err := newExchange(i+1, turn, o.InputRate)
		if err != nil {
			return nil, fmt.Errorf("%w: turn %d (%s): %w", ErrOptions, i+1, turn.Name, err)
		}
		c.script = append(c.script, x)
	}
	if o.InterruptAfter > 0 && len(c.script) == 1 && o.Ticket == "" {
		c.script = append(c.script, c.script[0].again(2))
	}
	c.player = newPlayer(o.OutputRate, o.KeepAudio, func(p protocol.Playback) { c.send(&p) })
	return c, nil
}

// open says the first words of the protocol.
func (c *conversation) open() {
	o := c.options
	c.send(&protocol.Start{
		Ticket: o.Ticket, Provider: o.Provider, Agent: o.Agent, Voice: o.Voice,
		InputRate: o.InputRate, OutputRate: o.OutputRate,
		Client: &protocol.ClientInfo{Name: "voicegw-talk"},
	})
}

func (c *conversation) over() bool { return c.phase == phaseOver }

func (c *conversation) enter(now time.Time, p phase) { c.phase, c.phaseSince = p, now }

func (c *conversation) emit(now time.Time, e Event) {
	e.AtMS = now.Sub(c.began).Milliseconds()
	c.options.Events(e)
}

func (c *conversation) emitTurn(now time.Time, name string, x *exchange, text string) {
	c.emit(now, Event{Event: name, Turn: x.number, Text: text})
}

// leave hangs up politely.
func (c *conversation) leave(now time.Time) {
	if c.phase == phaseLeaving || c.phase == phaseOver {
		return
	}
	c.leftSelf = true
	c.send(&protocol.End{})
	c.enter(now, phaseLeaving)
}

// fail ends the conversation with an error.
func (c *conversation) fail(now time.Time, err error) {
	if c.err == nil {
		c.err = err
	}
	c.enter(now, phaseOver)
}

// tick does what is due at now.
func (c *conversation) tick(now time.Time) {
	c.player.advance(now)
	if c.player.sounding() {
		c.lastHeard = now
	}
	c.tickQuestions(now)
	switch c.phase {
	case phaseStarting:
		if now.Sub(c.phaseSince) >= c.options.Patience {
			c.fail(now, fmt.Errorf("%w: no session.started within %s", ErrConnect, c.options.Patience))
		}
	case phasePending:
		if now.Sub(c.phaseSince) >= pendingTime {
			c.nothingPending(now)
		}
	case phaseResting:
		c.rest(now)
	case phaseSaying, phaseListening:
		c.listen(now)
	case phaseLeaving:
		if now.Sub(c.phaseSince) >= goodbyeTime {
			c.enter(now, phaseOver) // the answers count, not the goodbye
		}
	case phaseOver:
		return
	}
	c.speak(now)
}

// rest waits for silence, then says the next turn or leaves.
func (c *conversation) rest(now time.Time) {
	wait := pause
	if c.next == 0 {
		wait = leadIn
	}
	if (c.gwOpen > 0 || !c.player.idle()) && now.Sub(c.lastHeard) < c.options.Patience {
		c.phaseSince = now // a greeting, or the rest of an answer
		return
	}
	if len(c.questions) > 0 {
		c.phaseSince = now // its outcome is said in a turn of its own
		return
	}
	if now.Sub(c.phaseSince) < wait {
		return
	}
	if c.next == len(c.script) {
		c.leave(now)
		return
	}
	c.say(now)
}

// expectPending makes what was asked before the current exchange, before the session
// says that it has a turn.
func (c *conversation) expectPending(now time.Time) {
	x := c.script[0]
	c.current, c.next = x, 1
	x.onset, x.spokenAt = now, now
	c.enter(now, phasePending)
}

// nothingPending goes on without: the ticket's session begins with the client.
func (c *conversation) nothingPending(now time.Time) {
	c.script, c.current, c.next = c.script[1:], nil, 0
	if len(c.script) == 0 {
		c.err = fmt.Errorf("%w: nothing was asked before this session, and there is nothing to say; give at least one turn", ErrUnanswered)
	}
	c.enter(now, phaseResting)
}

// say begins the next turn.
func (c *conversation) say(now time.Time) {
	interrupts := c.current != nil && !c.current.over
	x := c.script[c.next]
	if interrupts {
		c.current.interruptedBy = x
		c.settle(now, c.current, true, "")
		c.emitTurn(now, EventInterrupting, x, x.turn.Name)
	}
	c.current = x
	c.next++
	c.lastHeard = now
	if x.turn.spoken() {
		c.enter(now, phaseSaying)
		return
	}
	c.send(&protocol.InputText{Text: x.turn.Text})
	x.onset, x.spokenAt = now, now
	c.emitTurn(now, EventTyped, x, x.turn.Text)
	c.enter(now, phaseListening)
}

// speak sends the frames that are due: of the current turn, or of silence.
func (c *conversation) speak(now time.Time) {
	if c.mic == nil || c.phase == phaseLeaving || c.phase == phaseOver {
		return
	}
	for c.mic.due(now) {
		var rest []byte
		if c.phase == phaseSaying {
			rest = c.current.pcm[c.current.sent:]
		}
		frame, used := c.mic.take(rest)
		c.sendAudio(frame)
		if c.phase == phaseSaying {
			c.spoke(now, c.current, used)
		}
	}
}

// spoke notes that n more bytes of a turn were sent.
func (c *conversation) spoke(now time.Time, x *exchange, n int) {
	x.sent += n
	if x.onset.IsZero() && x.sent > x.voicedFrom {
		x.onset = now
		c.emitTurn(now, EventSpeaking, x, x.turn.Name)
	}
	if x.spokenAt.IsZero() && x.sent >= x.voicedTo {
		x.spokenAt = now
		c.lastHeard = now
		c.emitTurn(now, EventSpoken, x, "")
		c.player.adopt(now, x)
	}
	if x.sent >= len(x.pcm) {
		c.enter(now, phaseListening)
	}
}

// listen looks whether the current turn has been answered, is to be interrupted,
// or has been waited for long enough.
func (c *conversation) listen(now time.Time) {
	x := c.current
	if x.spokenAt.IsZero() {
		return
	}
	switch {
	case c.dueToInterrupt(now, x):
		c.say(now)
	case c.phase == phaseSaying:
		// The rest of a recording is silence; let it out before the next turn.
	case x.over:
		c.enter(now, phaseResting)
	case x.completed && c.player.idle():
		if x.answerBytes == 0 {
			c.settle(now, x, false, "the turn ended without any audio")
			return
		}
		c.settle(now, x, true, "")
	case x.settledEarly && c.gwOpen == 0 && now.Sub(c.lastHeard) >= earlyTime:
		c.settle(now, x, true, "")
	case now.Sub(c.lastHeard) >= c.options.Patience:
		c.settle(now, x, false, fmt.Sprintf("nothing was heard for %s", c.options.Patience))
		c.leave(now)
	}
}

// dueToInterrupt says whether the next turn has to begin over the answer to x.
func (c *conversation) dueToInterrupt(now time.Time, x *exchange) bool {
	after := c.options.InterruptAfter
	return after > 0 && c.next < len(c.script) && !x.over && !x.firstAudio.IsZero() &&
		now.Sub(x.firstAudio) >= after && c.player.playing(x)
}

// settle decides how a turn came out.
func (c *conversation) settle(now time.Time, x *exchange, answered bool, reason string) {
	if x.over {
		return
	}
	x.over, x.answered, x.reason = true, answered, reason
	switch {
	case !answered:
		c.emitTurn(now, EventFailed, x, reason)
	case x.interruptedBy == nil:
		c.emitTurn(now, EventAnswered, x, "")
	}
}
