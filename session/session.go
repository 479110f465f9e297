package session

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"

	"voicegw/audio"
	"voicegw/orchestrator"
	"voicegw/orchestrator/execute"
	"voicegw/registry"
	"voicegw/session/wsclient"
	"voicegw/transport"
)

// Client is what a session needs of the connection to its client; *wsclient.Conn
// is one. One goroutine reads and one writes; Close and Abort may come from any,
// and end both.
type Client interface {
	Read() (wsclient.Frame, error)
	WriteAudio(pcm []byte) error
	WriteText(message []byte) error
	Ready() bool
	Close(code websocket.StatusCode, reason string) error
	Abort()
}

// session is one conversation, from session.start to its end.
type session struct {
	// Fixed after newSession.
	id        string
	user      string // who speaks
	before    string // what was said before the session, for the model
	startedAt time.Time
	opts      Options
	start     *wsclient.Start
	client    Client
	model     transport.Conn
	info      transport.Info
	up        *uplink
	down      *downlink
	clock     *audioClock
	tools     *registry.Snapshot // nil: there are none
	calls     *execute.Calls
	logger    *slog.Logger
	end       context.CancelCauseFunc // ends the session; the first cause stands
	done      <-chan struct{}         // closed by end
	cause     func() *Cause           // why it ended, once done
	wake      chan struct{}           // to the clock: the next tick has changed; capacity 1, never closed

	// Owned by readClient.
	resampleIn *audio.Resampler // nil where the rates agree
	ear        *audio.Detector  // nil where the model has its own
	upBuf      []byte
	directIn   transport.AudioIn
	errorsAt   []time.Time // when recent errors were sent
	control    *rate.Limiter
	speechFrom int64 // where the ear heard the speech begin, ms

	// Owned by readModel.
	resampleOut *audio.Resampler // nil where the rates agree
	downBuf     []byte
	lastItem    string

	// When the write to the client and the one to the model began, in ns since the
	// epoch; 0 while none is under way.
	writing, sending atomic.Int64

	// muted is set when the session ends and the user is not listened to any more.
	muted atomic.Bool

	// blockedUntil is set by a tool that shuts the user out.
	blockedUntil atomic.Pointer[time.Time]

	// modelHears is set when a model reports speech although its row does not say
	// so: the gateway's own ear then has nothing to add.
	modelHears atomic.Bool

	// visitors are calls of Manager.Confirm that bring an answer. New ones come only
	// while the Manager knows the session.
	visitors sync.WaitGroup

	// handed is closed when the conversation was handed back; set by goodbye, for settle.
	handed <-chan struct{}

	mu    sync.Mutex // guards the following fields
	state orchestrator.State
	story *story // nil where the session goes on with no conversation
}

func newSession(ctx context.Context, g *guest, opts Options, c Client, model transport.Conn, tools *registry.Snapshot) (*session, error) {
	info, start := model.Info(), g.start
	s := &session{
		id: g.id, user: g.user, before: g.before, startedAt: time.Now().UTC(), opts: opts, start: start, client: c, model: model, info: info,
		up:      newUplink(audio.Bytes(info.InputRate, upBacklog)),
		down:    newDownlink(audio.Bytes(start.OutputRate, opts.Limits.Backlog)),
		clock:   &audioClock{rate: start.InputRate},
		logger:  opts.Logger.With("session_id", g.id),
		wake:    make(chan struct{}, 1),
		control: rate.NewLimiter(controlRate, controlBurst),
	}
	ctx, s.end = context.WithCancelCause(ctx)
	s.done = ctx.Done()
	s.tools = tools
	s.cause = func() *Cause { return causeOf(context.Cause(ctx)) }
	var err error
	if s.resampleIn, err = resampler(start.InputRate, info.InputRate); err != nil {
		return nil, err
	}
	if s.resampleOut, err = resampler(info.OutputRate, start.OutputRate); err != nil {
		return nil, err
	}
	if !info.Capabilities.SpeechEvents && !s.manual() {
		s.ear = audio.NewDetector(audio.DetectorOptions{Rate: info.InputRate, SilenceMS: opts.SilenceMS, PrefixMS: opts.PrefixMS})
	}
	if start.ConversationID != "" && opts.HandBack != nil {
		s.story = &story{session: s.id}
	}
	s.state = orchestrator.NewState(info.Capabilities, opts.Policy, tools, time.Now())
	s.beginCalls()
	return s, nil
}

// upBacklog is how much audio may wait for the model; older is of no use to it.
const upBacklog = 5 * time.Second

// Messages that a client may send besides audio: so many a second, after a burst.
const (
	controlRate  = 50
	controlBurst = 200
)

func resampler(from, to int) (*audio.Resampler, error) {
	if from == to {
		return nil, nil
	}
	return audio.NewResampler(from, to)
}

// manual says whether the client tells when its user speaks.
func (s *session) manual() bool { return s.start.TurnDetection == wsclient.TurnDetectionClient }

// run carries the conversation and returns its cause when nothing of it is left but its
// tools; see settle.
func (s *session) run() *Cause {
	var pumps, writer sync.WaitGroup
	s.announce()
	s.dispatch(orchestrator.Began{PendingRequest: s.start.PendingRequest, Context: s.before, Greeting: s.opts.Agent.Greeting})
	writer.Go(s.writeClient)
	pumps.Go(s.readClient)
	pumps.Go(s.readModel)
	pumps.Go(s.writeModel)

	s.keepTime()

	cause := s.cause()
	s.goodbye(cause, &writer)
	if err := s.model.Close(); err != nil {
		s.logger.Debug("closing the model's connection", "error", err)
	}
	s.up.close()
	pumps.Wait()
	return cause
}

// settle waits for the tools and the handback, once nobody can bring the session anything any more.
func (s *session) settle() {
	s.visitors.Wait()
	s.calls.Wait()
	<-s.handed
}

// announce tells the client that the session has begun.
func (s *session) announce() {
	var expires wsclient.Time
	if s.opts.Policy.MaxLength > 0 {
		expires.Time = time.Now().Add(s.opts.Policy.MaxLength)
	}
	s.tell(&wsclient.SessionStarted{
		SessionID: s.id, Provider: s.info.Provider, Model: s.info.Model, Agent: s.opts.Agent.Name, ToolsVersion: s.toolsVersion(),
		InputRate: s.start.InputRate, OutputRate: s.start.OutputRate, ExpiresAt: expires,
	})
}

// goodbye tells the client why the session ends and closes its connection.
func (s *session) goodbye(cause *Cause, writer *sync.WaitGroup) {
	entries := s.told()
	// From here on, what still runs is journalled and nothing else happens.
	s.dispatch(orchestrator.Over{})
	s.calls.End()
	handback, handed := s.handBack(entries)
	s.handed = handed
	if cause != causeGone {
		select {
		case <-handed:
		case <-time.After(handbackWait):
		}
	}
	var last []wsclient.ServerMessage
	if cause.Code != "" {
		last = append(last, &wsclient.Error{Code: cause.Code, Message: cause.Message, Retryable: cause.retryable(), Until: wsclient.Time{Time: cause.Until}})
	}
	last = append(last, &wsclient.SessionEnded{Reason: cause.Reason, Handback: handback})
	if err := s.down.finish(last...); err != nil {
		s.logger.Error("encoding the last messages", "error", err)
	}
	// A client that is gone or stuck must not hold the session.
	abort := time.AfterFunc(goodbyeTimeout, s.client.Abort)
	defer abort.Stop()
	if cause == causeGone {
		s.client.Abort()
	}
	writer.Wait()
	if err := s.client.Close(cause.Close, cause.Reason); err != nil {
		s.logger.Debug("closing the client's connection", "error", err)
	}
	s.client.Abort()
}

// goodbyeTimeout is how long the last words to a client may take.
const goodbyeTimeout = 2 * time.Second

// keepTime brings the orchestrator its ticks and watches for a stuck client, until
// the session is over.
func (s *session) keepTime() {
	watch := time.NewTicker(time.Second)
	defer watch.Stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		s.mu.Lock()
		at := s.state.WakeAt()
		s.mu.Unlock()
		if at.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(max(time.Until(at), 0))
		}
		select {
		case <-s.done:
			return
		case <-s.wake:
		case <-timer.C:
			s.dispatch(orchestrator.Tick{})
		case now := <-watch.C:
			s.watch(now)
		}
	}
}

// watch ends a session whose client or model takes nothing in any more.
func (s *session) watch(now time.Time) {
	stuck := func(since int64, most time.Duration) bool {
		return since != 0 && now.UnixNano()-since > int64(most)
	}
	if stuck(s.writing.Load(), s.opts.Limits.SlowClient) {
		s.end(causeSlow)
	}
	if stuck(s.sending.Load(), modelStalled) {
		s.end(causeStalled)
	}
}

// modelStalled is how long the model may take nothing in.
const modelStalled = 15 * time.Second

// dispatch takes one step and carries out what it decides.
func (s *session) dispatch(in orchestrator.Input) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, now := s.state.WakeAt(), time.Now()
	next, actions := orchestrator.Step(s.state, now, in)
	s.narrate(in, actions, now)
	s.state = next
	for _, a := range actions {
		s.carryOut(a)
	}
	if after := s.state.WakeAt(); !after.Equal(before) {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// tell queues a message for the client.
func (s *session) tell(m wsclient.ServerMessage) {
	s.queued(s.down.pushMessage(m))
}

// queued ends the session where the client's queue is full.
func (s *session) queued(ok bool, err error) {
	if err != nil {
		s.logger.Error("encoding a message", "error", err)
		s.end(causeInternal)
	}
	if !ok {
		s.end(causeSlow)
	}
}

// command queues a command for the model.
func (s *session) command(cmd transport.Command) {
	if !s.up.pushCommand(cmd) {
		s.end(causeStalled)
	}
}

// isOver says whether an error of a pump only tells that the session has ended.
func (s *session) isOver() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// lost maps the end of the model's connection to a cause.
func lost(err error) *Cause {
	var te *transport.Error
	if errors.As(err, &te) && te.Kind == transport.KindExpired {
		return causeExpired
	}
	return causeLost
}
