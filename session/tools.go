package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/textutil"
	"voicegw/internal/user"
	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/execute"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/registry/spec"
	"voicegw/store"
	"voicegw/transport"
)

// toolHost connects the session's tools with it. Results become steps, on goroutines of the executor.
type toolHost struct{ s *session }

func (h toolHost) conversation() execute.Conversation {
	s := h.s
	var caps []any
	if s.byClient != nil {
		caps = append(caps, registry.ClientTools(s.byClient))
	}
	return execute.Conversation{
		Session: registry.Session{
			ID: s.id, UserID: s.user.String(), ConversationID: s.start.ConversationID,
			Agent: s.agent.Load().Name, Vouched: s.vouched, Scopes: s.scopes, Mode: spec.ModeVoice, TimeZone: s.start.TimeZone,
		},
		Capabilities: caps,
		Tell:         s.send,
		Blocked:      func(until time.Time) { s.blockedUntil.Store(&until) },
		Audit:        h.audit,
		Describe:     h.describe,
		Report:       h.report,
		Progress:     func(in calls.Progressed) { s.dispatch(orchestrator.OfCall{In: in}) },
		Owned:        func() bool { return s.place.Sure() },
		Checkpoint:   s.persist,
	}
}

func (h toolHost) describe(to *registry.Session) {
	v := locked(h.s, func() orchestrator.View { return h.s.state.View() })
	to.Phase = string(v.Phase)
	to.Suppressed = registry.Suppressed{Audio: v.AudioOff, Transcript: v.TranscriptOff}
}

func (h toolHost) audit(r audit.Record) {
	s := h.s
	s.mu.Lock()
	s.addRecord(&r)
	_ = s.saveNow() // it is logged
	s.mu.Unlock()
	s.audit(r)
}

var errMoved = errors.New("session: handed over to another gateway")

// persist saves the session, so that its started calls are durable. During a handover it waits for the outcome.
func (s *session) persist(ctx context.Context) error {
	if g := locked(s, s.model.currentHandover); g != nil {
		select {
		case <-g.over:
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // the caller's own
		}
		if g.left {
			return errMoved
		}
	}
	s.mu.Lock()
	if !s.canSave() {
		s.mu.Unlock()
		return nil
	}
	err := s.saveNow()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.place.Keep(ctx) //nolint:wrapcheck // it names the store
}

func declarations(tools *registry.Snapshot, form transport.SchemaForm, spoken bool) []transport.Tool {
	if tools == nil {
		return nil
	}
	var out []transport.Tool
	for _, t := range tools.Tools(spec.ModeVoice) {
		params := t.Forms.OpenAI
		if form == transport.SchemaOpenAPI {
			params = t.Forms.Gemini
		}
		out = append(out, transport.Tool{
			Name: t.ToolID, Description: t.Description, Parameters: params, NonBlocking: t.Behavior == spec.BehaviorNonBlocking,
		})
	}
	if spoken {
		out = append(out, confirmAction(form))
	}
	return out
}

func confirmAction(form transport.SchemaForm) transport.Tool {
	params := `{"type":"object","properties":{"reference":{"type":"string","description":"` +
		prompts.ConfirmActionReference + `"},"approved":{"type":"boolean","description":"` + prompts.ConfirmActionApproved +
		`"}},"required":["reference","approved"],"additionalProperties":false}`
	if form == transport.SchemaOpenAPI {
		params = `{"type":"OBJECT","properties":{"reference":{"type":"STRING","description":"` +
			prompts.ConfirmActionReference + `"},"approved":{"type":"BOOLEAN","description":"` +
			prompts.ConfirmActionApproved + `"}},"required":["reference","approved"],"propertyOrdering":["reference","approved"]}`
	}
	return transport.Tool{
		Name:        calls.ConfirmAction,
		Description: prompts.ConfirmAction,
		Parameters:  json.RawMessage(params),
	}
}

// The errors of Manager.SwitchAgent.
var (
	// ErrNotHere: the session does not run on this node.
	ErrNotHere = errors.New("session: not on this node")
	// ErrAgent: the agent cannot continue the session. The wrapping error has the reason.
	ErrAgent = errors.New("session: the agent cannot continue the session")
)

// If a switch of the agent cannot be prepared, the call fails.
func (h toolHost) report(in calls.Input) {
	s := h.s
	done, ok := in.(calls.Finished)
	if !ok || !done.Envelope.OK {
		s.dispatch(orchestrator.OfCall{In: in})
		return
	}
	for _, intent := range done.Envelope.Intents {
		if to := (otherWire{s}).transfers(); intent.Type == registry.IntentTransferCall && !slices.Contains(to, intent.To) {
			done.Envelope.Fail(registry.NewError(registry.ErrorNotFound, prompts.TransferNotPossible(clip(intent.To), to)))
			break
		}
		if intent.Type != registry.IntentSwitchAgent {
			continue
		}
		next, err := s.successor(intent.Agent)
		if err != nil {
			s.log().Info("a tool's agent switch failed", "agent", clip(intent.Agent), "error", err)
			done.Envelope.Fail(registry.NewError(registry.ErrorNotFound, prompts.SwitchNotPossible(clip(intent.Agent), err.Error())))
			break
		}
		s.dispatch(orchestrator.AgentFound{Agent: next})
		break
	}
	s.dispatch(orchestrator.OfCall{In: done})
}

// WhyNot returns the reason in an error of Manager.SwitchAgent, as the end of a sentence; empty without one.
func WhyNot(err error) string {
	_, why, _ := strings.Cut(err.Error(), ErrAgent.Error()+": ")
	return why
}

// The error is the end of a sentence. The result's Source is the redialer of the agent's connections.
func (s *session) successor(name string) (*orchestrator.NextAgent, error) {
	was := s.model.redial.Load()
	if was == nil {
		return nil, errors.New("the session has not begun")
	}
	m, present := was.m, s.agent.Load()
	a := m.options().agent(name)
	switch {
	case name == "" || a == nil:
		return nil, errors.New("the agent no longer exists")
	case a.Name == present.Name:
		return nil, errors.New("it is the current agent")
	case a.Provider != "" && s.start.Provider != "" && a.Provider != s.start.Provider:
		return nil, errors.New("it uses another provider than the client requested")
	}
	r := *was
	r.agent, r.tools = a, m.options().toolsFor(a, was.all, registry.Session{UserID: s.user.String(), Vouched: s.vouched, Scopes: s.scopes})
	return r.follow(s, was)
}

// follow makes r, a changed copy of the session's redialer was, its next agent.
func (r *redialer) follow(s *session, was *redialer) (*orchestrator.NextAgent, error) {
	m, a := was.m, r.agent
	r.provider = m.options().providerOf(&r.modelRequest)
	now := s.model.link().info()
	setup := m.options().setup(&r.modelRequest, r.provider)
	next := &orchestrator.NextAgent{
		From: s.agent.Load().Name, Name: a.Name, Version: a.Version, Tools: r.tools,
		Budget: a.Budget.Or(s.opts.Policy.Tools.Budget), Instructions: setup.Instructions, Declared: setup.Tools,
		Elsewhere: r.provider != was.provider || setup.Model != was.setup(was.provider).Model,
	}
	live := !next.Elsewhere && now.Capabilities.Reconfigure == transport.ReconfigureLive
	if !live && !(s.opts.Policy.Relink && orchestrator.Replaceable(now.Capabilities)) {
		return nil, errors.New("this session's model cannot change its instructions")
	}
	next.Source = r
	return next, nil
}

// agentSwitched makes another agent the session's. The caller must hold mu.
func (s *session) agentSwitched(a orchestrator.AgentSwitched) {
	r, ok := a.Source.(*redialer)
	if !ok {
		return // only steps of successor's results come here
	}
	version := s.agent.Load().Version
	s.agent.Store(r.agent)
	s.tools.Store(r.tools)
	s.model.redial.Store(r)
	s.calls.SetAgent(a.To)
	s.place.Update(func(is *store.SessionRecord) {
		is.Agent, is.AgentVersion, is.Provider = a.To, r.agent.Version, r.provider
	})
	if a.From == a.To {
		return // the client has changed it
	}
	s.log().Info("the agent was switched", "from", a.From, "to", a.To, "from_version", version, "version", r.agent.Version, "turn", a.Turn)
	s.audit(audit.Record{Event: audit.EventAgent, Time: audit.At(time.Now()), Mode: spec.ModeVoice,
		TurnID: a.Turn, From: a.From, Why: a.Reason})
	s.send(&protocol.AgentSwitched{Header: inTurn(a.Turn), From: a.From, To: a.To, Reason: a.Reason})
}

// SwitchAgent switches to any agent when the model owes no answer. The error wraps ErrNotHere or ErrAgent.
func (m *Manager) SwitchAgent(id, agent, reason string) error {
	s := m.roster.visit(id)
	if s == nil {
		return ErrNotHere
	}
	defer s.visitors.Done()
	next, err := s.successor(agent)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAgent, err)
	}
	s.dispatch(orchestrator.SwitchAgent{Agent: next, Reason: textutil.Shorten(reason, registry.MaxReason)})
	return nil
}

// maxDeclared bounds the names, descriptions and schemas of declared tools, in bytes.
const maxDeclared = 32 << 10

func (g *startup) declare() (cause *Cause) {
	g.declares = len(g.start.Tools) > 0 || g.start.Extra != nil
	g.all, cause = g.options().declare(g.fixed, g.start.Tools, g.start.Extra)
	g.start.Tools = nil // the snapshot has them
	return cause
}

func (o *Options) declare(fixed *registry.Snapshot, list []protocol.ClientTool, x *protocol.StartExtra) (*registry.Snapshot, *Cause) {
	if len(list) == 0 {
		return fixed, nil
	}
	switch most := o.Limits.ClientTools; {
	case most < 0:
		return nil, refusal(protocol.CloseBadProtocol, protocol.CodeNotAvailable,
			"This gateway does not let clients declare tools; start without the field tools.")
	case len(list) > most:
		return nil, wrongField("tools", "has %d tools; this gateway takes at most %d.", len(list), most)
	}
	size := 0
	var all []*registry.Tool
	for i, d := range list {
		if size += len(d.Name) + len(d.Description) + len(d.Schema); size > maxDeclared {
			return nil, wrongField("tools", "has more than %d KiB of names, descriptions and schemas.", maxDeclared>>10)
		}
		t, cause := declared(i, d, x != nil && x.AnyTools)
		if cause != nil {
			return nil, cause
		}
		all = append(all, t)
	}
	tools, err := fixed.With(all)
	var same *registry.SameName
	if errors.As(err, &same) {
		i := slices.IndexFunc(list, func(d protocol.ClientTool) bool { return d.Name == same.Name })
		return nil, wrongField(fmt.Sprintf("tools[%d].name", i),
			"is %q, and the tool %q is there already; give yours another name.", same.Name, clip(same.Other))
	}
	return tools, nil
}

func declared(i int, d protocol.ClientTool, anySchema bool) (*registry.Tool, *Cause) {
	t, problems := registry.Declare(registry.Declared{Name: d.Name, Description: d.Description, Parameters: d.Schema,
		ReadOnly: d.ReadOnly, TimeoutMS: d.TimeoutMS, AnySchema: anySchema})
	if len(problems) > 0 {
		field := fmt.Sprintf("tools[%d]%s", i, strings.ReplaceAll(problems[0].Path, "/", "."))
		return nil, wrongField(clip(field), "is not accepted: %s", textutil.Shorten(problems[0].Message, 400))
	}
	return t, nil
}

// clientCalls are the calls that the client runs. It is a capability of tools.
type clientCalls struct {
	s       *session
	fixed   *registry.Snapshot // the session's tools without the client's
	answer  answerReport
	changed *redialer // of the client's newest Reconfigure; nil before. Guarded by session.inbound

	mu   sync.Mutex // taken after session.mu; guards the following field
	open map[string]*clientCall
}

func newClientCalls(s *session, fixed *registry.Snapshot) *clientCalls {
	c := &clientCalls{s: s, fixed: fixed}
	if x := s.start.Extra; x != nil && x.Answers {
		c.answer.unasked = make(map[string]struct{})
	}
	return c
}

// clientCall is a call that the client has not answered. It is immutable.
type clientCall struct {
	registry.ClientCall
	until  time.Time
	answer chan *protocol.ToolResult // gets one value at most, from clientCalls.answered; not closed
}

// RunTool implements registry.ClientTools. An absent client is asked when it returns.
func (c *clientCalls) RunTool(ctx context.Context, call registry.ClientCall) (json.RawMessage, error) {
	asked := &clientCall{ClientCall: call, answer: make(chan *protocol.ToolResult, 1)}
	asked.until, _ = ctx.Deadline()
	c.mu.Lock()
	if c.open == nil {
		c.open = map[string]*clientCall{}
	}
	c.open[call.ID] = asked
	c.s.send(asked.message(false))
	c.mu.Unlock()
	c.asked(call.ID)
	defer func() {
		c.mu.Lock()
		delete(c.open, call.ID)
		c.mu.Unlock()
	}()
	select {
	case r := <-asked.answer:
		return readResult(r)
	case <-ctx.Done():
		return nil, ctx.Err() //nolint:wrapcheck // the caller's own
	}
}

func (c *clientCall) message(again bool) *protocol.ToolCall {
	return &protocol.ToolCall{Header: inTurn(c.Turn), CallID: c.ID, Name: c.Tool, Args: c.Args,
		TimeoutMS: max(time.Until(c.until).Milliseconds(), 1), Again: again}
}

func readResult(r *protocol.ToolResult) (json.RawMessage, error) {
	switch {
	case r.Error != nil:
		kind := registry.ErrorPermanent
		if r.Error.Retryable {
			kind = registry.ErrorTransient
		}
		return nil, &registry.ToolError{Type: kind, Message: r.Error.Message, Retryable: r.Error.Retryable,
			PartialSideEffects: r.Error.Partial}
	case len(r.Result) > registry.MaxClientData:
		words := prompts.ClientAnswerTooLong
		return nil, &registry.ToolError{Type: registry.ErrorPermanent, Message: words.Message, Suggestion: words.Suggestion,
			PartialSideEffects: true}
	}
	return r.Result, nil
}

// It does nothing for a nil receiver. The caller must hold session.mu.
func (c *clientCalls) askAgain() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.open {
		c.s.send(call.message(true))
	}
}

// answered takes the answer to a call. It reports false if no call waits for it.
func (c *clientCalls) answered(r *protocol.ToolResult) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.open[r.CallID]
	if call == nil {
		return false
	}
	delete(c.open, r.CallID)
	call.answer <- r
	return true
}

// toolResult handles the client's answer to a call. A late or repeated answer is ignored.
func (a *attachment) toolResult(m *protocol.ToolResult) {
	s := a.s
	switch {
	case s.byClient == nil:
		s.clientError(protocol.CodeInvalidMessage, "type", "tool.result needs a session that was started with tools.")
		return
	case len(m.Result) > registry.MaxClientData:
		s.clientError(protocol.CodeInvalidMessage,
			"result", "tool.result: the field result has %d bytes; at most %d are accepted. The model was told that the "+
				"answer is too long.", len(m.Result), registry.MaxClientData)
	}
	if !s.byClient.answered(m) && !locked(s, func() bool { return s.state.Named(m.CallID) }) {
		s.clientError(protocol.CodeInvalidMessage,
			"call_id", "tool.result: no tool.call of this session has the call_id %q.", clip(m.CallID))
	}
}

// Confirmed is the result of the API's answer to a confirmation.
type Confirmed struct {
	// Outcome is approved or denied.
	Outcome   calls.Outcome
	SessionID string
	Tool      string
	// Told: an approved call runs in the session here. Otherwise Envelope is its answer, for the model's next turn.
	Told     bool
	Envelope *registry.Envelope // nil for a denial, or if Told
}

// Confirm records the API's answer to a confirmation of any session. An approved call runs in its session if that is
// here, and otherwise at once. The error is store.ErrUnknown, store.ErrUsed, store.ErrExpired, or another reason why
// nothing was recorded.
//
// If who is not zero, other users' questions are unknown.
func (m *Manager) Confirm(ctx context.Context, token string, approved bool, who user.User) (Confirmed, error) {
	if err := m.options().Executor.CheckQuestion(ctx, token, who); err != nil {
		return Confirmed{}, err
	}
	c, err := m.options().Executor.Answer(ctx, "", token, approved)
	if err != nil {
		return Confirmed{}, err
	}
	outcome := calls.OutcomeDenied
	if approved {
		outcome = calls.OutcomeApproved
	}
	done := Confirmed{Outcome: outcome, SessionID: c.Session, Tool: c.Tool}
	if s := m.roster.visit(c.Session); s != nil {
		defer s.visitors.Done()
		if locked(s, func() bool { return s.state.Asks(token) }) { // a session that was taken over may lack questions
			s.dispatch(orchestrator.OfCall{In: calls.Resolved{Token: token, Outcome: outcome, By: calls.ByAPI}})
			done.Told = true
			return done, nil
		}
	}
	decider := execute.Decider{Executor: m.options().Executor, Tools: m.options().snapshot, Audit: m.options().Audit}
	done.Envelope = decider.Decide(ctx, c, approved, calls.ByAPI)
	m.decided(ctx, c, done.Envelope)
	if approved {
		m.options().Executor.Settle(c.Conversation, c.Session, c.Reference)
	}
	return done, nil
}

const decidedTime = 5 * time.Second

// decided tells the question's conversation of an answer, even if the caller has left.
func (m *Manager) decided(ctx context.Context, c store.Confirmation, env *registry.Envelope) {
	if m.options().Handoffs == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), decidedTime)
	defer cancel()
	var result json.RawMessage
	if env != nil {
		result = env.Encode()
	}
	if err := m.options().Handoffs.Decided(ctx, c, result); err != nil {
		m.options().Logger.Error("the outcome of a confirmation could not be written into its conversation",
			"session_id", c.Session, "conversation_id", c.Conversation, "reference", c.Reference, "error", err)
	}
}
