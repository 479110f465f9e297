package caller

import (
	"fmt"
	"slices"
	"time"

	"voicegw/client/load/measure"
	"voicegw/client/load/script"
	"voicegw/client/load/speech"
	"voicegw/protocol"
)

// The waits of a conversation, beside those of the script.
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
	// pendingTime is how long a session may take to begin to answer what was asked before.
	pendingTime = 5 * time.Second
	// goodbyeTime is how long the gateway may take to end the session.
	goodbyeTime = 10 * time.Second
	// thinkTime is how long a user looks at a question before pressing a button.
	thinkTime = 300 * time.Millisecond
	// flushTime is how long a flush may take after the stop button.
	flushTime = 5 * time.Second
	// overtime is how long a call may take to finish a turn when its time is up.
	overtime = time.Minute
	// longestAnswer bounds a turn, however much is said.
	longestAnswer = 10 * time.Minute
	// maxItems are answers of one call that are open at once.
	maxItems = 64
)

// phase is where a conversation stands.
type phase int

const (
	phaseStarting phase = iota // waiting for session.started
	phasePending               // waiting for the turn of what was asked before
	phaseResting               // between turns
	phaseTalking               // a turn is said, or answered
	phaseLeaving               // session.end is sent
	phaseOver
)

// conversation decides what to say and when. Every method is told the time; what is to be
// sent is in out.
type conversation struct {
	// Fixed after newConversation.
	set     *Settings
	c       *measure.Collector
	session int
	call    int
	limit   Limit
	ticket  ticket
	began   time.Time
	frame0  []byte // a frame of silence

	out []protocol.ClientMessage
	// news: what came may make something due at once.
	news bool

	phase      phase
	phaseSince time.Time
	rest       time.Duration // how long phaseResting lasts
	restSince  time.Time
	next       int // index of the turn after cur
	pass       int // through the script, from 1
	count      int // turns so far
	cur        *exchange
	unjudged   []*exchange
	mic        *microphone
	player     *player
	incoming   *item             // what binary frames belong to; nil for nothing
	turns      map[int]*exchange // of the gateway, by number, as far as they are not judged
	lastTurn   int               // the newest of them
	open       int               // turns of the gateway that have not ended
	sign       time.Time         // of life: when something was heard, or said about a turn
	word       time.Time         // when something was said about turns
	questions  []question
	calls      map[string]openCall

	id        string // of the session
	seq       int64
	asked     time.Time // session.end was sent
	ended     string    // the reason of session.ended
	lastError string
	stale     bool // stale frames have been told of
	// done says that nothing is missing: the script was gone through, or the time is up.
	done bool
	// cut says that a turn had no answer yet when the call ended.
	cut bool
	// leftBy is set where the model, and not this side, has ended the session in order.
	leftBy bool
}

// ticket admits to a session that was made before; the zero value is none.
type ticket struct {
	secret string
	at     time.Time // it was had
}

// question is one of a tool's that is to be answered.
type question struct {
	token    string
	approved bool
	at       time.Time // when to answer; zero once that was done
}

// openCall is a tool that runs.
type openCall struct {
	tool  string
	began time.Time
}

func newConversation(set *Settings, session, call int, limit Limit, t ticket, silence []byte, now time.Time) *conversation {
	c := &conversation{
		set: set, c: set.Collector, session: session, call: call, limit: limit, ticket: t, began: now, frame0: silence,
		phaseSince: now, sign: now, pass: 1, turns: map[int]*exchange{}, calls: map[string]openCall{},
	}
	c.player = newPlayer(set.OutputRate, set.Collector, func(p protocol.Playback) { c.send(&p) })
	c.send(c.start())
	return c
}

// start is the first message.
func (c *conversation) start() *protocol.Start {
	s := c.set.Script
	m := &protocol.Start{
		Provider: s.Provider, Agent: s.Agent, Voice: s.Voice, Ticket: c.ticket.secret,
		InputRate: c.set.InputRate, OutputRate: c.set.OutputRate,
		Client: &protocol.ClientInfo{Name: "voicegw-load", ID: c.variables().Fill(s.User)},
	}
	if c.set.Provider != "" {
		m.Provider = c.set.Provider
	}
	if s.PushToTalk {
		m.TurnDetection = protocol.TurnDetectionClient
	}
	return m
}

func (c *conversation) variables() script.Variables {
	return script.Variables{Session: c.session, Call: c.call, Pass: c.pass}
}

func (c *conversation) send(m protocol.ClientMessage) { c.out = append(c.out, m) }

func (c *conversation) over() bool { return c.phase == phaseOver }

func (c *conversation) enter(now time.Time, p phase) { c.phase, c.phaseSince = p, now }

// problem notes what went wrong in a turn; nil is none in particular.
func (c *conversation) problem(now time.Time, kind measure.Kind, x *exchange, format string, args ...any) {
	p := measure.Problem{
		Session: c.session, Call: c.call, ID: c.id, AtMS: now.Sub(c.set.Began).Milliseconds(),
		Kind: kind, What: fmt.Sprintf(format, args...),
	}
	if x != nil {
		p.Turn = x.number
		p.What += x.where()
	}
	c.c.Problem(p)
}

// where says which line of the script an exchange is.
func (x *exchange) where() string {
	if x.turn.Line == 0 {
		return ""
	}
	return fmt.Sprintf(" (line %d of the script)", x.turn.Line)
}

// tick does what is due.
func (c *conversation) tick(now time.Time) {
	c.player.advance(now)
	if c.player.sounding() {
		c.sign = now
	}
	c.answerQuestions(now)
	if end := c.limit.end(); !end.IsZero() && !now.Before(end) {
		c.done = c.done || c.limit.HangUp
		c.leave(now)
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
func (c *conversation) step(now time.Time) {
	switch c.phase {
	case phaseStarting:
		if now.Sub(c.phaseSince) >= c.set.ConnectTime {
			c.refuse(now, "no session.started within %s", c.set.ConnectTime)
		}
	case phasePending:
		if now.Sub(c.phaseSince) >= pendingTime {
			c.settleFailed(now, c.cur, "nothing was answered within %s, although it was asked before", pendingTime)
			c.restFor(now, 0)
		}
	case phaseResting:
		c.takeRest(now)
	case phaseTalking:
		c.listen(now)
	case phaseLeaving:
		if now.Sub(c.phaseSince) >= goodbyeTime {
			c.forsaken(now)
		}
	case phaseOver:
	}
}

// forsaken goes without the gateway's goodbye.
func (c *conversation) forsaken(now time.Time) {
	missing := "the connection was not closed"
	if c.ended == "" {
		missing = "no session.ended came"
	}
	c.c.Add(measure.Lost, 1)
	c.problem(now, measure.KindLost, nil, "%s within %s of session.end", missing, goodbyeTime)
	c.enter(now, phaseOver)
}

// refuse ends a call that has got no session.
func (c *conversation) refuse(now time.Time, format string, args ...any) {
	c.c.Add(measure.Refused, 1)
	c.problem(now, measure.KindRefused, nil, format, args...)
	c.enter(now, phaseOver)
}

// takeRest waits for silence, and then goes on with the script.
func (c *conversation) takeRest(now time.Time) {
	sounds := c.open > 0 || !c.player.idle()
	if c.waitsForSilence() && sounds && now.Sub(c.sign) < script.DefaultPatience && now.Sub(c.restSince) < c.rest+overtime {
		c.phaseSince = now // a greeting, or the rest of an answer
		return
	}
	if now.Sub(c.phaseSince) < c.rest {
		return
	}
	c.goOn(now)
}

// waitsForSilence says whether the next turn begins in silence.
func (c *conversation) waitsForSilence() bool {
	if c.cur == nil {
		return true
	}
	switch c.cur.turn.WaitFor {
	case script.ForFirstAudio, script.ForNothing, script.ForTool:
		return false
	default:
		return true
	}
}

// goOn begins the next turn, or leaves.
func (c *conversation) goOn(now time.Time) {
	turns := c.set.Script.Turns
	if !c.limit.Until.IsZero() && !now.Before(c.limit.Until) || c.limit.Until.IsZero() && c.next == len(turns) {
		c.done = true
		c.leave(now)
		return
	}
	if c.next == len(turns) {
		c.next = 0
		c.pass++
	}
	switch t := &turns[c.next]; t.Act {
	case script.Wait:
		c.next++
		c.restFor(now, t.Wait)
	case script.Stop:
		// The answer that it would have stopped is over.
		c.next++
		c.c.Add(measure.MissedInterruptions, 1)
		c.restFor(now, 0)
	default:
		c.say(now, nil)
	}
}

// restFor begins a rest, which the pause of the next turn makes longer.
func (c *conversation) restFor(now time.Time, d time.Duration) {
	turns := c.set.Script.Turns
	c.rest = d
	switch {
	case c.next == len(turns):
		c.rest += script.DefaultPause // the last words may still be on their way
	case turns[c.next].Act != script.Wait:
		c.rest += turns[c.next].Pause
	}
	c.restSince = now
	c.enter(now, phaseResting)
}

// say begins the next turn. interrupts is what it interrupts; nil for nothing.
func (c *conversation) say(now time.Time, interrupts *exchange) {
	t := &c.set.Script.Turns[c.next]
	c.next++
	c.count++
	if t.Interrupts && interrupts == nil {
		c.c.Add(measure.MissedInterruptions, 1)
	}
	x := &exchange{number: c.count, turn: t, interrupts: interrupts}
	c.begin(now, x)
	switch t.Act {
	case script.Say:
		r := c.recording(t)
		if c.set.Script.PushToTalk {
			c.send(&protocol.InputActivity{Active: true})
		}
		start := c.mic.say(now, r)
		x.onset, x.spoken = start.Add(r.Onset()), start.Add(r.End())
	case script.Type:
		c.send(&protocol.InputText{Text: c.variables().Fill(t.Text)})
		x.onset, x.spoken, x.known = now, now, now
	case script.Stop:
		c.send(&protocol.Interrupt{})
		x.onset, x.spoken, x.known = now, now, now
	case script.Wait: // goOn has seen to it
	}
	c.enter(now, phaseTalking)
}

// begin makes an exchange the current one.
func (c *conversation) begin(now time.Time, x *exchange) {
	c.c.Add(measure.Turns, 1)
	c.cur, c.sign, c.word = x, now, now
	c.unjudged = append(c.unjudged, x)
}

// recording is what a turn says.
func (c *conversation) recording(t *script.Turn) *speech.Recording {
	switch t.Recording {
	case "":
		return c.set.Speech.Line(t.Text)
	case script.AnyRecording:
		return c.set.Speech.Any(c.session + c.call + c.count)
	default:
		return c.set.Speech.Named(t.Recording)
	}
}

// listen goes on with the script once the current turn is over and has been said to its
// end: what remains of a recording is silence, and is let out before the next turn.
func (c *conversation) listen(now time.Time) {
	x := c.cur
	c.await(now, x)
	if c.cur == x && c.phase == phaseTalking && x.settled && (c.mic == nil || c.mic.idle()) {
		c.restFor(now, 0)
	}
}

// await looks whether a turn is over, is to be interrupted, or has been waited for long
// enough.
func (c *conversation) await(now time.Time, x *exchange) {
	switch {
	case c.interruptionDue(now):
		c.interrupt(now)
	case x.settled:
	case now.Before(x.spoken):
	case x.turn.Act == script.Stop:
		c.afterStop(now, x)
	case c.fulfilled(now, x):
		c.settle(now, x, measure.Answered)
	case x.failed && c.settles(now):
		c.settleFailed(now, x, "the turn failed%s", because(c.lastError))
	case x.completed && x.bytes == 0 && c.settles(now):
		c.settleFailed(now, x, "the turn ended without any audio")
	case now.Sub(later(c.sign, x.spoken)) >= x.turn.Patience || now.Sub(x.spoken) >= longestAnswer:
		c.stuck(now, x)
	}
}

// fulfilled says whether what the turn waits for has come.
func (c *conversation) fulfilled(now time.Time, x *exchange) bool {
	switch x.turn.WaitFor {
	case script.ForNothing:
		return true
	case script.ForFirstAudio:
		return !x.first.IsZero()
	case script.ForTool:
		return x.toolEnded
	case script.ForEnd:
		return false // lost sees to it
	case script.ForAnswer:
	}
	if x.earlyOver && c.open == 0 && now.Sub(later(c.sign, x.spoken)) >= earlyTime {
		return true // what was answered early was all that the model has heard
	}
	return x.completed && x.bytes > 0 && c.settles(now)
}

// settles says whether all is said and heard.
func (c *conversation) settles(now time.Time) bool {
	return c.open == 0 && c.player.idle() && len(c.questions) == 0 && now.Sub(c.word) >= quiet
}

// afterStop waits for what the stop button does.
func (c *conversation) afterStop(now time.Time, x *exchange) {
	switch {
	case !x.flushed.IsZero() || c.player.idle() && c.open == 0:
		c.settle(now, x, measure.Answered)
	case now.Sub(x.onset) >= flushTime:
		c.settleFailed(now, x, "no audio.flush came within %s of the stop button", flushTime)
	}
}

// interruptionAt is when the next turn interrupts the answer to this one; zero for never.
func (c *conversation) interruptionAt() time.Time {
	turns := c.set.Script.Turns
	if c.next == len(turns) || !turns[c.next].Interrupts || c.cur.first.IsZero() || c.cur.settled {
		return time.Time{}
	}
	return c.cur.first.Add(turns[c.next].InterruptAfter)
}

func (c *conversation) interruptionDue(now time.Time) bool {
	at := c.interruptionAt()
	return !at.IsZero() && !now.Before(at) && c.player.plays(c.cur) && (c.mic == nil || c.mic.idle())
}

// interrupt begins the next turn over the answer to the current one.
func (c *conversation) interrupt(now time.Time) {
	x := c.cur
	x.cutShort = true
	c.settle(now, x, measure.Interrupted)
	c.say(now, x)
}

// stuck hangs up, because nothing more comes.
func (c *conversation) stuck(now time.Time, x *exchange) {
	x.settled = true
	c.c.Add(measure.Stuck, 1)
	heard := "nothing has come of an answer"
	if x.bytes > 0 {
		heard = "the answer has begun and does not end"
	}
	c.problem(now, measure.KindStuck, x, "%s for %s since the user stopped speaking%s",
		heard, now.Sub(x.spoken).Round(100*time.Millisecond), because(c.lastError))
	c.leave(now)
}

// settle says how a turn has come out.
func (c *conversation) settle(now time.Time, x *exchange, as measure.Counter) {
	if x.settled {
		return
	}
	x.settled = true
	c.c.Add(as, 1)
	c.judge(now, x)
}

// settleFailed is settle for a turn that failed, which the script may want.
func (c *conversation) settleFailed(now time.Time, x *exchange, format string, args ...any) {
	if x.settled {
		return
	}
	if x.expectsError() {
		c.settle(now, x, measure.Answered)
		return
	}
	c.problem(now, measure.KindFailed, x, format, args...)
	c.settle(now, x, measure.Failed)
}

// leave hangs up.
func (c *conversation) leave(now time.Time) {
	if c.phase >= phaseLeaving {
		return
	}
	if c.id == "" {
		c.enter(now, phaseOver)
		return
	}
	c.cutOff()
	c.send(&protocol.End{})
	c.asked = now
	c.enter(now, phaseLeaving)
}

// cutOff settles a turn that gets no answer any more.
func (c *conversation) cutOff() {
	x := c.cur
	if x == nil || x.settled {
		return
	}
	x.settled, c.cut = true, true
	c.c.Add(measure.Cut, 1)
	c.unjudged = slices.DeleteFunc(c.unjudged, func(u *exchange) bool { return u == x })
}

// because says why, if that is known.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// frame is the next frame to send if it is due, and when it was.
func (c *conversation) frame(now time.Time) (pcm []byte, due time.Time, ok bool) {
	if c.mic == nil || c.phase >= phaseLeaving {
		return nil, due, false
	}
	if due = c.mic.due(); now.Before(due) {
		return nil, due, false
	}
	if now.Sub(due) > behind {
		c.c.Add(measure.FramesDropped, c.mic.skip(now.Add(-c.mic.length)))
		due = c.mic.due()
	}
	pcm = c.mic.take()
	if x := c.cur; c.set.Script.PushToTalk && x != nil && x.turn.Act == script.Say && x.known.IsZero() && !x.spoken.After(c.mic.due().Add(-c.mic.length)) {
		c.send(&protocol.InputActivity{})
		x.known = now
	}
	return pcm, due, true
}

// behind is how late a frame may be before it, and those after it, are thrown away.
const behind = time.Second

// wake is when tick or frame have something to do next, after now; the zero time for
// never. Both have just been called.
func (c *conversation) wake(now time.Time) time.Time {
	var at time.Time
	consider := func(t time.Time) {
		if t.After(now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	consider(c.player.next())
	consider(c.limit.end())
	if c.mic != nil && c.phase < phaseLeaving {
		consider(c.mic.due())
	}
	for _, q := range c.questions {
		consider(q.at)
	}
	switch c.phase {
	case phaseStarting:
		consider(c.phaseSince.Add(c.set.ConnectTime))
	case phasePending:
		consider(c.phaseSince.Add(pendingTime))
	case phaseResting:
		consider(c.phaseSince.Add(c.rest))
	case phaseTalking:
		x := c.cur
		consider(x.spoken)
		consider(c.interruptionAt())
		consider(c.word.Add(quiet))
		consider(x.onset.Add(flushTime))
		consider(later(c.sign, x.spoken).Add(earlyTime))
		consider(later(c.sign, x.spoken).Add(x.turn.Patience))
	case phaseLeaving:
		consider(c.phaseSince.Add(goodbyeTime))
	case phaseOver:
	}
	return at
}
