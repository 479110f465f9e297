package live

import (
	"cmp"
	"log/slog"
	"slices"
	"strings"
	"time"

	"voicegw/audio"
	"voicegw/internal/livewire"
	"voicegw/internal/openaiwire"
	"voicegw/sim/scenario"
	"voicegw/sim/voice"
	"voicegw/sim/wire"
)

const (
	usageEvery  = 15 * time.Second       // between two reports of usage, as recorded also while the timeline stands still
	quietBefore = 500 * time.Millisecond // without audio, after which a close does not wait for appends any longer
	// maxPending, maxDelegated and maxMemory bound the memory of a session.
	maxPending, maxDelegated, maxMemory = 1000, 1000, 1000
	tokensPerSecond                     = 50   // about the recorded growth of the context
	noCode                              = 1005 // a close frame without a code, as recorded
)

// conn is one session on one connection. The goroutine of wire.Conn.Run owns everything in it.
type conn struct {
	opts  wire.Options
	log   *slog.Logger
	lines *voice.Cache
	w     *wire.Conn
	ids   *wire.IDs
	azure bool

	sess      *livewire.Session // nil before the start
	dialogue  *scenario.Dialogue
	memory    []scenario.Memory
	context   int // tokens that are not of audio
	later     wire.Pending
	in        input
	out       output
	pending   []appended // in the order of their places
	delegated []string   // the ids of delegations, the newest last
	calls     int
	closing   *ending // set by session.close

	// Faults.
	quota    bool // the balance is exhausted
	deaf     bool // the model answers nothing
	unplaced int  // so many of the next appends are lost
	onCall   []scenario.Fault
	noAudio  time.Time // output has no audio until then
}

// appended is an append that waits for its place on the timeline.
type appended struct {
	livewire.ClientEvent

	slot int64 // the begin of the place
	lost bool
}

type ending struct {
	id string // of session.close
	by time.Time
}

// Due is when something happens without the client.
func (c *conn) Due() (time.Time, bool) {
	at, ok := c.later.Next()
	if next, more := c.in.next(c); more && (!ok || next.Before(at)) {
		at, ok = next, true
	}
	return at, ok
}

// Proceed does all that is due.
func (c *conn) Proceed(now time.Time) {
	c.settle()
	c.later.Run(now, c.w.Closed)
	for next, ok := c.in.next(c); ok && !next.After(now) && !c.w.Closed(); next, ok = c.in.next(c) {
		c.tick(next)
		c.settle()
	}
	c.drain(now)
	c.settle()
}

func (c *conn) settle() { c.later.Settle(c.Commit) }

func (c *conn) emit(e openaiwire.ServerEvent) {
	frame, err := e.Encode(c.ids.IDs)
	if err != nil {
		// Every value can be encoded.
		c.log.Error("event not sent", "event", e.Type, "error", err)
		return
	}
	c.later.Sent(c.w.Send(e.Type, c.out.turn, frame))
}

// acknowledge answers a client's event. Azure's documentation shows no client_event_id.
func (c *conn) acknowledge(kind, id string, members ...any) {
	if c.azure {
		id = ""
	}
	c.emit(livewire.Reply(kind, id, members...))
}

func (c *conn) fail(err *openaiwire.Error, id string) {
	c.opts.Stats.Errors.Add(1)
	c.emit(livewire.Fail(err, id))
}

// Handle takes an event of the client.
func (c *conn) Handle(data []byte) {
	e, err := livewire.ParseClientEvent(data)
	switch {
	case c.sess == nil:
		if err == nil {
			err = c.start(&e)
		}
		if err != nil { // no session.started will come
			c.opts.Stats.Refused.Add(1)
			c.log.Info("session refused", "code", err.Code, "param", err.Param)
			c.fail(err, e.ID)
			c.w.Close(noCode, "")
		}
		return
	case c.closing != nil: // only audio still counts
		if err == nil && e.Type == livewire.AudioAppend {
			err = c.appendAudio(e.Audio)
		}
	case err == nil:
		err = c.handle(&e)
	}
	if err != nil && c.closing == nil {
		c.fail(err, e.ID)
	}
}

func (c *conn) start(e *livewire.ClientEvent) *openaiwire.Error {
	if e.Type != livewire.Start {
		return openaiwire.Invalid(livewire.CodeInvalidValue, "type", "The first event must be '%s', but got '%s'.", livewire.Start, e.Type)
	}
	s, err := livewire.ParseStart(e.Session)
	switch {
	case err != nil:
		return err
	case s.Model != livewire.Model && !c.azure: // Azure's model is the name of a deployment
		return openaiwire.Invalid(livewire.CodeModelNotFound, "session.model",
			"The model `%s` does not exist or you do not have access to it.", s.Model)
	case c.quota:
		return noCredit()
	}
	life := cmp.Or(c.opts.ConnectionLife, livewire.Life)
	s.ID, s.Status, s.ExpiresAt = "live_"+c.ids.Base62(32), "active", time.Now().Add(max(life, 0)).Unix()
	if s.Instructions = strings.TrimSpace(s.Instructions); s.Instructions == "" {
		s.Instructions = wire.Instructions
	}
	c.sess, c.context = s, livewire.Tokens(s.Instructions)
	for _, m := range s.Input {
		who := map[string]string{"user": "user", "assistant": "model", "developer": "system"}[m.Role]
		c.remember(who, m.Text())
	}
	c.in.begin(s.Audio.Format)
	c.out.filler = never
	c.acknowledge(livewire.Started, e.ID, "session", s)
	c.log.Info("session started", "model", s.Model, "azure", c.azure)
	c.Commit(c.w.At(scenario.Point{At: scenario.AtSetup}))
	if life > 0 {
		c.later.After(life, func() { c.end(livewire.ReasonExpired, "") })
	}
	c.later.After(livewire.NoAudioLife, func() {
		if !c.in.any {
			c.end(livewire.ReasonExpired, "")
		}
	})
	c.later.After(usageEvery, c.usage)
	return nil
}

func noCredit() *openaiwire.Error {
	return &openaiwire.Error{Type: "insufficient_quota", Code: livewire.CodeNoCredit, Message: "Your credit balance is exhausted."}
}

func (c *conn) usage() {
	size := c.context + int(c.in.ms)*tokensPerSecond/1000
	if float64(size) > livewire.CompactAt*livewire.ContextTokens { // the session is compacted, without an event
		c.context -= size - livewire.Tokens(c.sess.Instructions) - livewire.MaxInputTokens
	}
	c.emit(livewire.Usage(float64(c.in.ms/1000), float64(size)/livewire.ContextTokens))
	c.later.After(usageEvery, c.usage)
}

func (c *conn) remember(who, text string) {
	if text == "" {
		return
	}
	c.memory = append(c.memory, scenario.Memory{Who: who, Text: text})
	c.memory = c.memory[max(len(c.memory)-maxMemory, 0):]
}

func (c *conn) handle(e *livewire.ClientEvent) *openaiwire.Error {
	switch e.Type {
	case livewire.Start:
		return openaiwire.Invalid(livewire.CodeInvalidValue, "type", "The session has started already.")
	case livewire.Update:
		changed, err := c.sess.Update(e.Session)
		if err != nil {
			return err
		}
		c.sess = changed
		c.acknowledge(livewire.Updated, e.ID, "session", c.sess)
	case livewire.AudioAppend:
		return c.appendAudio(e.Audio)
	case livewire.Mute:
		c.in.muted = true
		c.acknowledge(livewire.Muted, e.ID)
	case livewire.Unmute:
		c.in.muted = false
		c.acknowledge(livewire.Unmuted, e.ID)
	case livewire.InstructionsAppend, livewire.ThinkingAppend, livewire.CommentaryAppend:
		return c.appendContext(e)
	case livewire.FixturePlay:
		return c.playFixture(e)
	case livewire.Close:
		c.closing = &ending{e.ID, time.Now().Add(livewire.DrainFor)}
		c.later.After(quietBefore, func() {}) // to look again
		c.later.After(livewire.DrainFor, func() {})
	}
	return nil
}

func (c *conn) appendContext(e *livewire.ClientEvent) *openaiwire.Error {
	switch {
	case c.out.fixture != nil:
		return fixtureActive()
	case strings.TrimSpace(e.Content) == "":
		return openaiwire.Invalid(livewire.CodeInvalidValue, "content", "Context append text must not be empty.")
	case e.Delegation != "" && !slices.Contains(c.delegated, e.Delegation):
		return openaiwire.Invalid(livewire.CodeInvalidValue, "delegation_id", "No delegation has the id '%s'.", e.Delegation)
	case len(c.pending) >= maxPending:
		return openaiwire.Invalid(livewire.CodeInvalidValue, "",
			"%d appends wait already. Send audio, so that they are placed.", maxPending)
	}
	if e.Type != livewire.InstructionsAppend {
		c.out.filler = never // all of them, whatever delegation they are about
	}
	if e.Delegation != "" {
		c.opts.Stats.Results.Add(1)
	}
	a := appended{ClientEvent: *e, slot: slotOf(c.in.ms), lost: c.unplaced > 0}
	c.unplaced = max(c.unplaced-1, 0)
	c.pending = append(c.pending, a)
	return nil
}

// place acknowledges the appends whose place the timeline has reached, and lets them have their effect.
func (c *conn) place() {
	for i := 0; i < len(c.pending) && c.pending[i].slot+livewire.SlotMS+lagMS <= c.in.ms; {
		a := c.pending[i]
		if a.lost {
			i++
			continue
		}
		c.pending = slices.Delete(c.pending, i, i+1)
		c.acknowledge(livewire.AppendType(a.Type), a.ID, "start_ms", a.slot, "end_ms", a.slot+livewire.SlotMS)
		c.context += livewire.Tokens(a.Content)
		c.take(&a.ClientEvent)
	}
}

// take lets an append have its effect: commentary is spoken, thinking is known, instructions are answered like typed
// text.
func (c *conn) take(e *livewire.ClientEvent) {
	switch {
	case e.Type == livewire.ThinkingAppend || c.deaf:
		c.remember("system", e.Content)
	case e.Type == livewire.CommentaryAppend:
		c.react([]scenario.Step{scenario.Say{Text: e.Content}}, commentaryAfter)
	default:
		turn := c.instructed(e.Content)
		c.remember("system", e.Content)
		if len(turn.Steps) > 0 {
			c.stop()
			c.react(turn.Steps, instructionsAfter)
		}
	}
}

func fixtureActive() *openaiwire.Error {
	return openaiwire.Invalid(livewire.CodeInvalidValue, "", "A fixture is being played. Wait for '%s'.", livewire.FixturePlayed)
}

func (c *conn) playFixture(e *livewire.ClientEvent) *openaiwire.Error {
	pcm, err := audio.AppendFromBase64(nil, e.Audio)
	switch {
	case c.out.fixture != nil:
		return fixtureActive()
	case err != nil || len(pcm) == 0 || len(pcm)%audio.BytesPerSample != 0:
		return openaiwire.Invalid(livewire.CodeInvalidAudio, "audio", "A fixture is base64-encoded PCM16 at %d Hz.", livewire.FixtureRate)
	case audio.Duration(livewire.FixtureRate, len(pcm)) > livewire.MaxFixture:
		return openaiwire.Invalid(livewire.CodeInvalidValue, "audio",
			"A fixture must not be longer than %g seconds.", livewire.MaxFixture.Seconds())
	}
	clip, err := audio.Clip{Rate: livewire.FixtureRate, PCM: pcm}.Resample(c.in.format.Hz())
	if err != nil { // every rate of a session can be reached
		return openaiwire.Invalid(livewire.CodeInvalidAudio, "audio", "The fixture cannot be resampled.")
	}
	c.out.fixture = &line{id: e.ID, audio: c.in.format.Encode(new([]byte), clip.PCM)}
	return nil
}

// drain ends a closing session when nothing waits for a place, or nothing will reach it.
func (c *conn) drain(now time.Time) {
	waits := slices.ContainsFunc(c.pending, func(a appended) bool { return !a.lost })
	if c.closing != nil && (!waits || now.Sub(c.in.last) >= quietBefore || !now.Before(c.closing.by)) {
		c.end(livewire.ReasonRequested, c.closing.id)
	}
}

// end ends the session: an error for each append that was not placed, session.closed, and the socket.
func (c *conn) end(reason, id string) {
	if c.w.Closed() || c.sess == nil {
		return
	}
	for _, a := range c.pending {
		c.fail(&openaiwire.Error{Type: "server_error", Code: livewire.CodeContextIncomplete,
			Message: "The session ended before the context was placed on its timeline."}, a.ID)
	}
	c.pending = nil
	if c.azure {
		id = ""
	}
	c.emit(livewire.End(reason, c.sess, float64(c.in.ms/1000), id))
	c.w.Close(noCode, "")
}

// Commit carries out faults.
func (c *conn) Commit(as []scenario.Fault) {
	for _, a := range as {
		switch a.Kind {
		case scenario.GoAway: // nothing announces the end
			c.later.After(a.For, func() { c.expire(a) })
		case scenario.Expire:
			c.expire(a)
		case scenario.Quota:
			if c.quota = true; c.sess != nil {
				c.fail(noCredit(), "")
				c.w.Close(noCode, "") // whether session.closed comes first is unknown
			}
		case scenario.DuplicateCall, scenario.LateCall, scenario.MissingID, scenario.Undelegated:
			c.onCall = append(c.onCall, a)
		case scenario.Deaf:
			c.deaf = true
		case scenario.Unplaced:
			c.unplaced += a.Times
		case scenario.NoAudio:
			c.noAudio = time.Now().Add(cmp.Or(a.For, 24*time.Hour))
		default:
			// wire.Conn has carried it out, or it is about a call or a resume: a delegation cannot be cancelled, and a session
			// cannot be resumed.
		}
	}
}

// expire ends the session with the reason of the fault: that of session.closed, such as content; expired without one.
func (c *conn) expire(a scenario.Fault) { c.end(cmp.Or(a.Reason, livewire.ReasonExpired), "") }
