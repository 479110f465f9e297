// Package session carries one voice conversation between a client and a model.
//
// A [Manager] admits sessions, counts them and drains them. Each session has four pumps and a clock, which end with
// the session. A writing pump exists only while something is queued. A reading pump is a function that its connection
// calls:
//
//	client --attachment.hear--> uplink --writeModel--> model
//	client <----writeClient---- downlink <--link.hear--- model
//
// Each pump passes events to orchestrator.Step and performs the resulting actions in one critical section. Actions
// never block: they only add to the two queues. So effects have the order of decisions: a flush cannot overtake audio,
// nor audio a flush. Audio bypasses the orchestrator: it goes from pump to queue to pump.
package session

import (
	"cmp"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"github.com/coder/websocket"

	"voicegw/audio"
	"voicegw/internal/audit"
	"voicegw/internal/auth"
	"voicegw/internal/cost"
	"voicegw/internal/user"
	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/execute"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/session/downlink"
	"voicegw/session/handoff"
	"voicegw/transport"
)

// Client is the connection to a session's client in any protocol; *protocol.Conn implements voicegw.v1. One goroutine
// reads session.start; after Notify, the connection calls its function. One goroutine writes. Close and Abort end both.
//
// Input is decoded by the connection. Output has the encoding of voicegw.v1, in which the session queues it and keeps
// it for a returning client; a connection of another protocol decodes it with protocol.ParseServer. The PCM of
// WriteAudio belongs to the item of the last audio.start.
type Client interface {
	Receive() (protocol.Input, error)
	Notify(f func())
	TryReceive() (in protocol.Input, ok bool, err error)
	CaughtUp() time.Time
	WriteAudio(pcm []byte) error
	WriteText(message []byte) error
	Ready() bool
	Gone() bool
	KeepAlive(pingAfter, lostAfter int) bool
	Probe(n uint32) error
	Proven() uint32
	Close(code websocket.StatusCode, reason string) error
	Abort()
}

// session is one conversation, from session.start to its end. Its parts are values in one allocation: small separate
// ones with the same lifetime would fragment the memory of idle sessions.
//
// The locks are taken in this order: inbound, ear.mu, mu.
type session struct {
	identity
	ending

	// Fixed after newSession.
	admission *Admission
	place     Place    // in the directory; noPlace if only this node knows the session
	opts      *Options // the Manager's
	start     *protocol.Start
	voice     string // requested from the model; empty for its default
	up        uplink
	down      downlink.Queue
	calls     execute.Runner
	byClient  *clientCalls // runs the client's tools; nil if it declared none

	// The current agent and its tools, which are nil if it has none. Both are stored under mu.
	agent atomic.Pointer[Agent]
	tools atomic.Pointer[registry.Snapshot]

	model  modelSide
	client clientSide

	inbound sync.Mutex // held while the client is heard
	mic     microphone
	ear     listener

	mu         sync.Mutex                    // guards the following fields
	principal  unique.Handle[auth.Principal] // what let the client in; it expires with the newest credentials
	clock      *time.Timer                   // fires the next tick; nil before the first
	state      orchestrator.State
	transcript *handoff.Transcript // nil if the session does not continue a conversation
	saver      *handoff.Saver      // nil without transcript
	saved      checkpoints
	records    auditTrail
	shown      inspector
	watch      watcher
	usage      usage
	jobs       jobReports
}

// identity is fixed after newSession.
type identity struct {
	id        string
	user      user.User // who speaks
	scopes    []string  // from the ticket
	vouched   bool      // from the ticket
	inspect   bool      // the client may see the session's inner state
	origin    string    // the page's; empty without one
	epoch     uint64    // number of processes that have run the session, from 1
	before    string    // the conversation before the session, for the model
	startedAt time.Time
	elsewhere time.Duration // from startedAt to its beginning in this process
}

// newSession returns a session that has not begun. c is nil for one that another process has run and that only ends here.
func newSession(g *startup, opts *Options, c Client, model transport.Conn) (*session, error) {
	info, start := model.Info(), g.start
	s := &session{
		identity: identity{id: g.SessionID, user: g.User, vouched: g.Vouched, scopes: g.Scopes, inspect: g.Inspect,
			before: g.Context, startedAt: time.Now().UTC(), epoch: 1},
		ending: ending{done: make(chan struct{}), left: make(chan struct{})},
		opts:   opts, start: start, voice: g.voice, principal: unique.Make(g.principal), place: noPlace{},
		usage: usage{meter: g.account},
	}
	s.agent.Store(cmp.Or(g.agent, &opts.Agent))
	s.tools.Store(g.tools)
	s.mic.clock.rate = start.InputRate
	s.mic.setModel(info, opts.JoinSilence)
	s.up.begin(audio.Bytes(info.InputRate, upBacklog), audio.Bytes(info.InputRate, longestQueued), s.writeModel)
	s.up.unsent = func(r *audit.Record) { s.audit(undelivered(r)) }
	s.beginDown()
	if g.declares {
		s.byClient = newClientCalls(s, g.fixed)
	}
	l := new(link)
	var err error
	if s.mic.resampler, err = resampler(start.InputRate, info.InputRate); err == nil {
		err = l.begin(s, g.firstLink(), model)
	}
	if err != nil {
		return nil, err
	}
	s.model.linked.Store(l)
	s.ear.modelHears = info.Capabilities.SpeechEvents
	replaceable := opts.Policy.Relink && orchestrator.Replaceable(info.Capabilities)
	if said := s.partHeader(); replaceable || said.ConversationID != "" {
		s.transcript = handoff.NewTranscript(said)
	}
	if replaceable {
		s.model.lookback.begin(info.InputRate, opts.looked)
	}
	if g.restoring == nil || g.restoring.resume != nil {
		s.model.first = redialer{m: g.m, provider: g.provider, modelRequest: g.modelRequest}
		s.model.redial.Store(&s.model.first)
	}
	if g.restoring != nil {
		s.epoch = g.restoring.taken.Record.Epoch
		g.restoring.restore(s)
	}
	if opts.Handoffs != nil && start.ConversationID != "" {
		s.saver = handoff.NewSaver(s.transcript, opts.Handoffs, s.log())
	}
	s.usage.talk.before.Read = g.instructed + int64(len(g.Context))
	s.beginState(g, info.Capabilities)
	if s.admission = g.admission; s.admission != nil {
		s.origin = s.admission.Origin
	}
	beginClient(s, c)
	return s, nil
}

func (s *session) beginState(g *startup, caps transport.Capabilities) {
	a := s.agent.Load()
	s.state = orchestrator.NewState(caps, s.opts.rulesOf(a, s.start.Extra), g.tools, g.mark, time.Now())
	s.state.In(user.ZoneOr(s.start.TimeZone, nil))
	s.state.As(calls.Agent{Name: a.Name, Version: a.Version})
	s.calls.Begin(s.opts.Executor, toolHost{s}.conversation())
}

func (s *session) beginDown() {
	limits, rate := s.opts.Limits, s.start.OutputRate
	s.down.Begin(downlink.Bounds{
		Rate: rate, Audio: audio.Bytes(rate, limits.Backlog), All: limits.BacklogBytes,
		Frame: audio.Bytes(rate, maxDownFrame), Away: audio.Bytes(rate, awayBacklog),
	}, s.writeClient)
	if s.opts.Policy.ResumeGrace > 0 && s.start.Extra == nil { // clients of other protocols cannot return
		s.down.Keep(s.opts.budget, audio.Bytes(rate, heldAudio), limits.Held)
	}
}

// heldAudio limits audio that the client may lack, awayBacklog audio queued for an absent client.
const (
	heldAudio   = 10 * time.Second
	awayBacklog = 30 * time.Second
)

func (s *session) partHeader() handoff.Part {
	said := handoff.Part{SessionID: s.id, Agent: s.agent.Load().Name, User: s.user, Epoch: s.epoch}
	if s.opts.Handoffs != nil {
		said.ConversationID = s.start.ConversationID
	}
	return said
}

// upBacklog bounds the audio queued for the model; older audio is useless. longestQueued is the longest frame of it.
const (
	upBacklog     = 5 * time.Second
	longestQueued = 100 * time.Millisecond
)

func resampler(from, to int) (*audio.Resampler, error) {
	if from == to {
		return nil, nil
	}
	return audio.NewResampler(from, to)
}

func manual(start *startMessage) bool { return start.TurnDetection == protocol.TurnDetectionClient }

// begin starts the conversation and both reading pumps. token lets the client resume; empty if it cannot.
func (s *session) begin(token string) {
	a := s.client.attachment()
	s.mu.Lock()
	s.checkQueue(true, s.down.Lead(s.startedMessage(token, false, false)))
	s.welcome(a.gen, s.client.tokens.saved(s.place.Written()))
	s.mu.Unlock()
	s.dispatch(orchestrator.Began{PendingRequest: s.start.PendingRequest, Context: s.before, Greeting: s.agent.Load().Greeting,
		Notice: s.agent.Load().Notice})
	otherWire{s}.tellHistory()
	s.watchLapse()
	s.readers.Add(1)
	a.start()
	s.model.link().start()
	s.model.link().expires()
}

// finish ends the conversation after done is closed. It returns the cause when only the tools are left; see settle.
func (s *session) finish() *Cause {
	cause := s.finalCause()
	s.closeClient(cause)
	s.closeModel(s.model.link().conn)
	s.up.close()
	s.up.wait()
	s.readers.Wait()
	s.client.leaving.Wait()
	s.model.lookback.forget()
	return cause
}

func (s *session) closeModel(conn transport.Conn) {
	if err := conn.Close(); err != nil {
		s.log().Debug("closing the model's connection", "error", err)
	}
}

func (s *session) settle() {
	s.visitors.Wait()
	s.calls.Wait()
	<-s.handed
	s.waitForAudit(auditWait)
}

// startedMessage returns the first message to an attachment. The caller must hold mu.
func (s *session) startedMessage(token string, resumed, snapshot bool) *protocol.SessionStarted {
	var expires protocol.Time
	if s.opts.Policy.MaxLength > 0 {
		expires.Time = s.startedAt.Add(s.opts.Policy.MaxLength)
	}
	if lapse := s.lapses(); !lapse.IsZero() && (expires.IsZero() || lapse.Before(expires.Time)) {
		expires.Time = lapse
	}
	info := s.model.link().info()
	return &protocol.SessionStarted{
		SessionID: s.id, ResumeToken: token, Resumed: resumed, Snapshot: snapshot,
		Provider: info.Provider, Model: info.Model, Agent: s.agent.Load().Name, AgentsVersion: s.agent.Load().All,
		ToolsVersion: s.toolsVersion(),
		InputRate:    s.start.InputRate, OutputRate: s.start.OutputRate, ExpiresAt: expires,
		InputMS: s.mic.clock.ms(), Voice: s.voice, ConversationID: s.start.ConversationID, Inspect: s.inspect,
		Images:  info.Capabilities.Images,
		Context: info.Capabilities.AddItem != transport.AddItemNone,
	}
}

// part returns the session's part of the conversation so far. It must be called before the session's last step.
func (s *session) part() handoff.Part {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	return s.transcript.Part(s.state.Spent(), func(item string) (heard, queued int64, ok bool) {
		heard, ok = s.state.Heard(item, now)
		return heard, s.queuedMS(item), ok
	})
}

// queuedMS returns how much audio of an incomplete item has arrived, in ms.
func (s *session) queuedMS(item string) int64 {
	return audio.MS(s.start.OutputRate, int(s.down.ItemBytes(item)))
}

func (s *session) closeClient(cause *Cause) {
	if !cause.continues() { // otherwise the next process gives it to the model
		s.mu.Lock()
		s.transcript.Record(nil, s.state.Ungiven(), time.Now(), s.queuedMS)
		s.mu.Unlock()
	}
	said, lasted := s.part(), time.Since(s.startedAt)
	// From here on, running calls are only recorded.
	s.dispatch(orchestrator.Over{})
	s.mu.Lock()
	s.setClock() // no more ticks
	s.mu.Unlock()
	s.resumeSteps() // records results that came during a handover
	s.calls.End()
	if err := s.down.Finish(s.lastMessages(cause, said, lasted)...); err != nil {
		s.log().Error("encoding the last messages", "error", err)
	}
	// An absent or stuck client must not delay the session's end.
	a := s.client.attachment()
	if a == nil {
		s.down.Lose()
		s.down.Wait()
		return
	}
	client := a.conn
	abort := time.AfterFunc(closeTimeout, client.Abort)
	defer abort.Stop()
	if cause == causeGone {
		client.Abort()
	}
	s.down.Wait()
	if err := client.Close(cause.Close, cause.Reason); err != nil {
		s.log().Debug("closing the client's connection", "error", err)
	}
	client.Abort()
}

// A session that another process continues is not handed back.
func (s *session) lastMessages(cause *Cause, said handoff.Part, lasted time.Duration) (last []protocol.ServerMessage) {
	if cause.continues() {
		s.handed = s.saver.Stop()
		return []protocol.ServerMessage{&protocol.SessionMoving{Reason: cause.movingReason(),
			Deadline: protocol.Time{Time: time.Now().UTC()}}}
	}
	handback, handed := s.saver.HandBack(said, handoff.Ending{Lasted: lasted, Gone: cause == causeGone, Lost: cause == causeVoiceLost})
	s.handed = handed
	if cause.Code != "" {
		last = append(last, &protocol.Error{Code: cause.Code, Message: cause.Message, Retryable: cause.retryable(),
			Until: protocol.Time{Time: cause.Until}})
	}
	return append(last, &protocol.SessionEnded{Reason: cause.Reason, Handback: handback})
}

// closeTimeout bounds the last messages to a client.
const closeTimeout = 2 * time.Second

func (s *session) tick() {
	if !s.isOver() {
		s.dispatch(orchestrator.Tick{})
	}
}

// setClock sets the time of the next tick. The caller must hold mu.
func (s *session) setClock() {
	at := s.state.WakeAt()
	switch {
	case at.IsZero() || s.isOver() || s.model.handover != nil:
		if s.clock != nil {
			s.clock.Stop()
		}
	case s.clock == nil:
		s.clock = time.AfterFunc(time.Until(at), s.tick)
	default:
		s.clock.Reset(time.Until(at))
	}
}

// dispatch first reports the audio sent to the client, because the client cannot have heard more.
func (s *session) dispatch(in orchestrator.Input) {
	s.dispatchFrom(nil, in)
}

// dispatchFrom is dispatch for an event of l. It does nothing if l is not the session's link. A nil l is not checked.
func (s *session) dispatchFrom(l *link, in orchestrator.Input) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l != nil && !l.current() {
		return
	}
	before, now := s.state.WakeAt(), time.Now()
	s.stepSent(now)
	s.step(in, now)
	if s.opts.Policy.ResumeGrace > 0 {
		s.down.LetGo(func(item string) bool { // heard and flushed audio is not sent again
			_, sounds := s.state.Heard(item, now)
			return !sounds
		})
	}
	s.shown.state(s)
	s.client.lagged()
	_, ticked := in.(orchestrator.Tick)
	if ticked || s.clock == nil || !s.state.WakeAt().Equal(before) {
		s.setClock()
	}
}

func (s *session) reportSent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.state.WakeAt()
	s.stepSent(time.Now())
	s.shown.state(s)
	if !s.state.WakeAt().Equal(before) {
		s.setClock()
	}
}

// stepSent is reportSent for a caller that holds mu and sets the clock itself.
func (s *session) stepSent(now time.Time) {
	for _, in := range s.down.Left() {
		s.step(in, now)
	}
}

// During a handover the input waits, except Over, until the session stays or is over. The caller must hold mu.
func (s *session) step(in orchestrator.Input, now time.Time) {
	if _, over := in.(orchestrator.Over); s.model.handover != nil && !over {
		s.model.handover.keep(in)
		return
	}
	next, actions := orchestrator.Step(s.state, now, in)
	if s.transcript.Record(in, actions, now, s.queuedMS) {
		s.saver.Save(s.transcript.SoFar(next.Spent()))
	}
	s.state = next
	s.mic.calm.Store(next.Calm())
	s.usage.count(in, actions, &s.mic.clock)
	for i, a := range actions {
		if ended, ok := a.(orchestrator.TurnEnded); ok {
			a = s.usage.estimate(s, ended)
			actions[i] = a
		}
		if s.opts.Policy.ResumeGrace > 0 {
			s.client.state.update(a)
		}
		s.updateLookback(a)
		s.carryOut(a)
	}
	s.usage.talk.settle(in, actions)
	s.saved.afterStep(s, in, actions)
	s.watch.observe(s, in, actions, now)
	s.byClient.report(false)
	if guessed := s.usage.guessed; guessed != (cost.Amount{}) {
		s.usage.guessed = cost.Amount{}
		s.step(orchestrator.Guessed{Cost: guessed}, now)
	}
}

func (s *session) send(m protocol.ServerMessage) {
	s.checkQueue(s.down.PushMessage(m))
}

// log returns a logger with the session's id. It is made on demand because most sessions log nothing for hours.
func (s *session) log() *slog.Logger { return s.opts.Logger.With("session_id", s.id) }

func (s *session) checkQueue(ok bool, err error) {
	if err != nil {
		s.log().Error("encoding a message", "error", err)
		s.end(causeInternal)
	}
	switch {
	case ok:
	case s.opts.Policy.ResumeGrace > 0:
		s.client.behind.Store(true)
	default:
		s.end(causeSlow)
	}
}

// command queues a command for the model, with the record that it makes true, or nil.
func (s *session) command(cmd transport.Command, record *audit.Record) {
	if !s.up.pushCommand(cmd, record) {
		s.end(causeStalled)
	}
}

func locked[T any](s *session, f func() T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f()
}
