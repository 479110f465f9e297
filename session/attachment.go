package session

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"voicegw/audio"
	"voicegw/orchestrator"
	"voicegw/protocol"
	"voicegw/session/downlink"
	"voicegw/store"
)

// clientSide is the session's state that concerns its client and outlives each connection.
type clientSide struct {
	// attached is nil while the client is absent. It is stored under mu, and a new one also under inbound.
	attached atomic.Pointer[attachment]
	leaving  sync.WaitGroup // goroutines that close or greet a connection; added to under mu until the end
	behind   atomic.Bool    // the client's queue is over its limit; lagged acts on it
	count    int32          // the attachments so far; guarded by mu
	errors   errorGate
	control  *rate.Limiter // of the client's messages; nil before the first; guarded by inbound

	// Guarded by mu.
	tokens tokens
	state  clientState
}

// attachment is one connection of a session's client. A session has at most one, its field attached; each has a higher
// gen than the previous one. The session's locks drop what an older one still delivers.
type attachment struct {
	// Fixed after attach.
	s    *session
	gen  int // counts the session's attachments from 1
	conn Client

	// Owned by hear.
	over     bool
	heard    bool      // the client has sent a frame
	proven   uint32    // number of the last answered probe
	caughtUp time.Time // the current audio arrived after it; zero if unknown
}

// beginClient attaches the first client; it is nil for a session that only ends here.
func beginClient(s *session, first Client) {
	if first == nil {
		s.down.Detach()
		return
	}
	s.inbound.Lock()
	defer s.inbound.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down.Attach(s.attach(first).gen)
}

// The connection is not read before start is called. The caller must hold inbound and mu.
func (s *session) attach(c Client) *attachment {
	s.client.count++
	a := &attachment{s: s, gen: int(s.client.count), conn: c}
	s.client.attached.Store(a)
	s.readers.Add(1)
	return a
}

// current is final if false; true is valid while the caller holds mu.
func (a *attachment) current() bool { return a.s.client.attachment() == a }

func (a *attachment) start() { a.conn.Notify(a.hear) }

// hear reads the client's frames; the client's connection calls it.
func (a *attachment) hear() {
	s := a.s
	s.inbound.Lock()
	defer s.inbound.Unlock()
	a.caughtUp = a.conn.CaughtUp()
	for !a.over {
		in, ok, err := a.conn.TryReceive()
		switch {
		case err != nil:
			a.over = true
			a.lost(gone(err))
			s.readers.Done()
		case !ok:
			if n := a.conn.Proven(); n != a.proven {
				a.proven = n
				a.probed(n)
			}
			return
		case a.current():
			if !a.heard && s.down.Speaks() {
				a.heard = true
				a.confirmToken()
			}
			a.take(in, a.caughtUp)
		}
	}
}

// lost ends the session if the cause does not allow it to continue without a client. It ignores an older attachment.
func (a *attachment) lost(cause *Cause) {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	a.lostNow(cause)
}

// lostNow is lost for a caller that holds mu.
func (a *attachment) lostNow(cause *Cause) {
	s := a.s
	switch {
	case !a.current() || s.isOver():
	case s.opts.Policy.ResumeGrace > 0 && (cause == causeGone || cause == causeLeft || cause == causeSlow):
		a.detach(cause)
		s.stepSent(time.Now())
		s.step(orchestrator.ClientLost{}, time.Now())
		s.shown.state(s)
		s.setClock()
	default:
		s.end(cause)
	}
}

// cannotWrite is lost after a failed write. At the session's end, nothing more is written.
func (a *attachment) cannotWrite(err error) {
	if a.s.isOver() || a.s.opts.Policy.ResumeGrace <= 0 {
		a.s.down.Lose()
	}
	a.lost(gone(err))
}

// detach removes the session's attachment and closes its connection. The caller must hold mu.
func (a *attachment) detach(cause *Cause) {
	s := a.s
	s.client.attached.Store(nil)
	s.down.Detach()
	s.admission.vacate()
	s.place.Update(func(r *store.SessionRecord) { r.State = store.SessionDetached })
	if cause == causeSlow {
		s.event(Slow{})
	}
	s.log().Info("client lost", "reason", cause.Reason, "attachment", a.gen)
	if cause == causeGone || cause == causeLeft {
		s.client.leaving.Go(a.conn.Abort)
		return
	}
	s.client.leaving.Go(func() { refuse(a.conn, cause) })
}

// lagged, called after a step, disconnects a client that has fallen too far behind. The caller must hold mu.
func (c *clientSide) lagged() {
	if !c.behind.Swap(false) {
		return
	}
	if a := c.attachment(); a != nil {
		a.lostNow(causeSlow)
	}
}

// attachment returns the session's attachment; nil while the client is absent.
func (c *clientSide) attachment() *attachment { return c.attached.Load() }

func (a *attachment) confirmToken() {
	s := a.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client.tokens.received() {
		s.place.Update(s.client.tokens.writeTo)
	}
}

// take handles one frame, which arrived after since; zero means now. The caller must hold inbound.
func (a *attachment) take(in protocol.Input, since time.Time) {
	s := a.s
	if s.isOver() {
		return // the rest of a flood gets no answers
	}
	if in.Audio {
		a.audio(in.PCM, since)
		return
	}
	if s.client.control == nil {
		burst := controlBurst
		if s.start.Extra != nil {
			burst = historyBurst
		}
		s.client.control = rate.NewLimiter(controlRate, burst)
	}
	if !s.client.control.AllowN(time.Now(), price(in.Message)) {
		s.clientError(protocol.CodeLimit, "", "Too many messages: the limit is %d units a second, and typed text counts "+
			"most; this one was dropped.", controlRate)
		return
	}
	if in.Mistake != nil {
		s.clientError(in.Mistake.Code, in.Mistake.Field, "%s", in.Mistake.Message)
		return
	}
	a.message(in.Message)
}

func gone(err error) *Cause {
	switch protocol.CloseStatus(err) {
	case protocol.CloseDone:
		return causeHungUp
	case protocol.CloseServerLeaving:
		return causeLeft
	}
	switch {
	case protocol.TooBig(err):
		return causeTooBig
	case protocol.Flooded(err):
		return causeFlood
	}
	return causeGone
}

// clientError reports a mistake to the client; too many end the session.
func (s *session) clientError(code, ref, format string, args ...any) {
	s.sendError(&protocol.Error{Code: code, Message: fmt.Sprintf(format, args...), Ref: ref})
}

// audio handles one frame of the user's audio, which arrived after since. The caller must hold inbound.
func (a *attachment) audio(pcm []byte, since time.Time) {
	s := a.s
	rate := s.start.InputRate
	switch n := len(pcm); {
	case n == 0:
		s.clientError(protocol.CodeInvalidAudio, "", "The audio frame is empty.")
		return
	case n%audio.BytesPerSample != 0:
		s.clientError(protocol.CodeInvalidAudio, "", "The audio frame has %d bytes; PCM16 needs an even number. It was dropped.", n)
		return
	case n > audio.Bytes(rate, protocol.MaxFrameMS*time.Millisecond):
		s.clientError(protocol.CodeInvalidAudio, "",
			"The audio frame is %d ms long; at most %d ms are accepted. It was dropped.", audio.MS(rate, n), protocol.MaxFrameMS)
		return
	}
	now := s.opts.now()
	limit := s.opts.Limits.audioAhead(s.start.Extra)
	ahead, hole, ok := s.mic.clock.add(len(pcm), since, now, limit)
	switch {
	case hole > minGap:
		s.up.allowBurst(audio.Bytes(s.model.link().info().InputRate, min(hole, maxBurst)))
	case ok && ahead > upBacklog:
		s.up.allowBurst(audio.Bytes(s.model.link().info().InputRate, ahead))
	}
	if !ok {
		if dropped, tell := s.mic.tooFast(len(pcm)); tell {
			s.clientError(protocol.CodeAudioTooFast, "",
				"The audio is %d ms ahead of real time; at most %d ms are accepted. Frames dropped since the last such error: %d.",
				ahead.Milliseconds(), limit.Milliseconds(), dropped)
		}
		return
	}
	s.mic.send(s, pcm)
}

func (a *attachment) message(m protocol.ClientMessage) {
	s := a.s
	switch m := m.(type) {
	case *protocol.InputText:
		s.dispatch(orchestrator.UserText{ID: m.ID, Text: m.Text})
	case *protocol.InputImage:
		data, err := m.File()
		if err != nil { // ParseClient has checked it
			s.clientError(protocol.CodeInvalidMessage, "data", "%v", err)
			return
		}
		s.dispatch(orchestrator.UserImage{MIME: m.MIME, Data: data})
	case *protocol.InputContext:
		s.dispatch(orchestrator.UserContext{Text: m.Text})
	case *protocol.AddItem:
		s.dispatch(earlierPart(m))
	case *protocol.Respond:
		s.dispatch(orchestrator.UserAsk{Instructions: m.Instructions})
	case *protocol.Reconfigure:
		otherWire{s}.reconfigure(m)
	case *protocol.InputActivity:
		if !manual(s.start) {
			s.clientError(protocol.CodeInvalidMessage,
				"type", "input.activity needs a session that was started with turn_detection \"client\".")
			return
		}
		s.dispatch(orchestrator.UserActivity{Active: m.Active, AudioMS: s.mic.clock.ms()})
	case *protocol.Interrupt:
		s.dispatch(orchestrator.UserInterrupt{})
	case *protocol.Playback:
		s.down.Acknowledged(m.Seq)
		s.down.Received(m.ItemID, max(m.ReceivedMS, m.PlayedMS))
		s.dispatch(orchestrator.Played{Item: m.ItemID, MS: m.PlayedMS, Done: m.Done})
	case *protocol.End:
		s.dispatch(orchestrator.HungUp{})
	case *protocol.Ping:
		s.down.Acknowledged(m.Seq)
		s.send(&protocol.Pong{T: m.T})
	case *protocol.Start:
		s.clientError(protocol.CodeAlreadyStarted, "", "The session has already started; session.start comes once, first.")
	case *protocol.ConfirmationResolve:
		s.dispatch(orchestrator.ConfirmationAnswer{Token: m.Token, Approved: m.Approved})
	case *protocol.ToolResult:
		a.toolResult(m)
	}
}

// The cost of a client's messages is limited per second, with a burst. protocol.FramesPerSecond limits frames.
const (
	controlRate  = 50
	controlBurst = 200
	historyBurst = 1000 // for protocols whose clients bring the items of an earlier conversation
)

// price returns a message's cost, at least 1, according to the work it causes. docs/protocol.md has the table.
func price(m protocol.ClientMessage) int {
	switch m.(type) {
	case *protocol.InputText, *protocol.InputImage, *protocol.InputContext, *protocol.ConfirmationResolve, *protocol.Respond,
		*protocol.Reconfigure:
		return 10
	case *protocol.InputActivity, *protocol.Interrupt:
		return 4
	}
	return 1
}

// Errors to a client are limited. More than floodErrors of its own within floodWindow, or sessionErrors in all, are a
// flood. Of others, one every faultEvery follows the first floodErrors.
const (
	floodErrors   = 20
	floodWindow   = 10 * time.Second
	sessionErrors = 200
	faultEvery    = 10 * time.Second
)

// errorGate limits the errors to a running session's client. It may be used concurrently.
type errorGate struct {
	mu      sync.Mutex // guards the following fields
	recent  []time.Time
	faults  *rate.Limiter // limits other errors; nil before the first
	own     int32         // the client's own errors so far
	leftOut bool          // some errors were left out
}

type verdict int

const (
	errorSent verdict = iota
	errorLeftOut
	errorIsFlood
)

func (g *errorGate) pass(code string, now time.Time) (v verdict, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !clientsFault(code) {
		if g.faults == nil {
			g.faults = rate.NewLimiter(rate.Every(faultEvery), floodErrors)
		}
		if g.faults.AllowN(now, 1) {
			return errorSent, false
		}
		first, g.leftOut = !g.leftOut, true
		return errorLeftOut, first
	}
	g.own++
	for len(g.recent) > 0 && now.Sub(g.recent[0]) > floodWindow {
		g.recent = g.recent[1:]
	}
	g.recent = append(g.recent, now)
	if len(g.recent) > floodErrors || g.own > sessionErrors {
		return errorIsFlood, false
	}
	return errorSent, false
}

func clientsFault(code string) bool {
	switch code {
	case protocol.CodeProviderAuth, protocol.CodeProviderBusy, protocol.CodeProviderQuota, protocol.CodeProviderAnswer,
		protocol.CodeProviderUnavailable, protocol.CodeContentFilter,
		protocol.CodeProviderError, protocol.CodeTranscriptionFailed, protocol.CodeNoAnswer, protocol.CodeStoreUnavailable:
		return false
	}
	return true
}

// After the session's end, only the error that explains it is sent.
func (s *session) sendError(m *protocol.Error) {
	if s.isOver() {
		return
	}
	if clientsFault(m.Code) {
		s.event(Rejected{m.Code})
	}
	switch v, first := s.client.errors.pass(m.Code, time.Now()); v {
	case errorIsFlood:
		s.end(causeFlood)
		return
	case errorLeftOut:
		if first {
			s.log().Warn("too many errors: the client does not get all of them", "code", m.Code)
		}
		return
	}
	if r := protocol.RetryOf(m.Code); r != protocol.RetryDepends {
		m.Retryable = r == protocol.RetryLater
	}
	s.send(m)
}

// writeClient writes the downlink's entries to an attachment; it runs while something is queued.
func (s *session) writeClient(gen int) {
	a := s.client.attachment()
	if a == nil || a.gen != gen {
		return // it was lost before the start
	}
	stuck := time.AfterFunc(s.opts.Limits.SlowClient, func() { a.lost(causeSlow) })
	defer stuck.Stop()
	for {
		e, ok := s.down.Pop(gen)
		if !ok {
			return
		}
		stuck.Reset(s.opts.Limits.SlowClient)
		if err := a.writeEntry(e); err != nil {
			a.cannotWrite(err) // the next Pop fails
		}
	}
}

func (a *attachment) writeEntry(e downlink.Entry) error {
	s := a.s
	if e.Text != nil {
		if err := a.conn.WriteText(e.Text); err != nil {
			return err
		}
	}
	if e.Frame != nil {
		if err := a.conn.WriteAudio(e.Frame.PCM); err != nil {
			return err
		}
	}
	probe := s.down.Written(a.gen, e)
	if e.Frame != nil {
		e.Frame.Free()
	}
	if err := a.probe(probe); err != nil {
		return err
	}
	if e.Reported() {
		s.reportSent()
	}
	return nil
}

// writeDirect saves a hop if the network takes audio at once, and reports whether it did. That frame cannot be flushed.
func (a *attachment) writeDirect(item string, pcm []byte) bool {
	if a == nil || !a.conn.Ready() || !a.s.down.Claim(a.gen, item, pcm) {
		return false
	}
	err := a.conn.WriteAudio(pcm) // the connection buffers the rest
	if err != nil {
		a.cannotWrite(err)
	}
	if err := a.probe(a.s.down.Release(a.gen, item, len(pcm))); err != nil {
		a.cannotWrite(err)
	}
	return true
}

func (a *attachment) probed(n uint32) {
	s := a.s
	s.reportSent() // so that it counts as heard
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.down.Proven(a.gen, n, func(item string) int64 {
		if heard, sounds := s.state.Heard(item, now); sounds {
			return max(heard-playAllowance.Milliseconds(), 0)
		}
		return math.MaxInt64
	})
}

// playAllowance is how far a client without reports may be behind the estimate of its playback.
const playAllowance = time.Second

// probe sends a probe of the downlink; n is zero for none.
func (a *attachment) probe(n uint32) error {
	if n == 0 {
		return nil
	}
	return a.conn.Probe(n)
}
