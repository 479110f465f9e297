package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"voicegw/internal/auth"
	"voicegw/internal/user"
	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/orchestrator/execute"
	"voicegw/prompts"
	"voicegw/protocol"
	"voicegw/registry"
	"voicegw/session/handoff"
	"voicegw/store"
	"voicegw/transport"
)

const (
	// elsewhereTries and elsewherePause bound the search for a session that may be changing its node.
	elsewhereTries = 4
	elsewherePause = 250 * time.Millisecond
	// takeTime bounds the store's part of a takeover, except Cluster.Take.
	takeTime = 5 * time.Second
)

// resumeElsewhere goes to the session's node or, if that is gone, takes the session over and returns it.
func (g *startup) resumeElsewhere(a *Admission, c Client) (*session, *Cause) {
	id := g.start.Resume.SessionID
	for range elsewhereTries {
		if c.Gone() {
			return nil, causeGone // it asks on another connection
		}
		switch carried := g.m.carry(a, c, g.start); {
		case carried:
			g.m.observe(Returned{Outcome: ReturnedThere})
			return nil, nil
		case g.options().Cluster == nil:
			return nil, g.m.refuseResume(id)
		case a.carried:
			return nil, causeMoving // this node has handed it over
		case g.m.Draining():
			return nil, causeShutdown // another node or process takes it
		}
		leave, first := g.m.roster.take(id)
		if !first {
			return nil, causeMoving // another connection of the client was first
		}
		s, cause, err := g.takeOver(a, c)
		leave()
		switch {
		case err == nil:
			return s, cause
		case g.m.Runs(id):
			return nil, causeMoving // another connection of the client was first
		case errors.Is(err, ErrNoSession):
			return nil, g.m.refuseResume(id)
		case !errors.Is(err, ErrElsewhere):
			g.options().Logger.Error("a session could not be taken over", "session_id", clip(id), "error", err)
			return nil, causeStore
		}
		select {
		case <-time.After(elsewherePause):
		case <-g.m.ctx().Done():
		}
	}
	return nil, causeMoving
}

// takeOver makes this node the session's owner and continues it. The error is that of Cluster.Take.
func (g *startup) takeOver(a *Admission, c Client) (*session, *Cause, error) {
	t, err := g.options().Cluster.Take(g.m.ctx(), a.visitor(g.start))
	var unfit *Cause
	switch {
	case errors.As(err, &unfit):
		return nil, unfit, nil
	case err != nil:
		return nil, nil, err
	}
	began := time.Now()
	g.logger = g.options().Logger.With("session_id", t.Record.ID)
	s, end, cause := g.continueSession(a, c, t)
	if cause == nil {
		s.log().Info("a session was taken over", "epoch", t.Record.Epoch, "given", t.handedOver(), "turn", t.Checkpoint.Turn,
			"checkpoint_age_ms", began.Sub(t.Checkpoint.At).Milliseconds(), "took_ms", time.Since(began).Milliseconds(),
			"addr", a.addr.String())
		s.event(g.started())
		outcome := ReturnedTaken
		if t.handedOver() {
			outcome = ReturnedMoved
		}
		g.m.observe(Returned{Outcome: outcome, Took: time.Since(g.arrivedAt)})
		return s, nil, nil
	}
	g.logger.Warn("a session was taken over but cannot continue here", "reason", cause.Reason, "ended", end)
	if end {
		t.Place.Leave()
		return nil, cause, nil
	}
	ctx, cancel := context.WithTimeout(g.m.ctx(), takeTime)
	defer cancel()
	if err := t.Place.Return(ctx); err != nil {
		g.logger.Error("a session that cannot continue here could not be released", "error", err)
	}
	return nil, cause, nil
}

// handedOver reports whether the previous node handed the session over. Otherwise that node died.
func (t *Taken) handedOver() bool { return !t.Record.Lost }

func (g *startup) prepare(ctx context.Context, t *Taken) (*restoring, transport.Capabilities, error) {
	r := t.Record
	who, err := user.Stored(r.User)
	if err != nil {
		return nil, transport.Capabilities{}, fmt.Errorf("session: the user in the session's record: %w", err)
	}
	g.provider = r.Provider
	if g.options().Transports[g.provider] == nil {
		g.provider = g.options().Provider
	}
	g.agent = g.options().pinned(ctx, r.Agent, r.AgentVersion, g.logger)
	g.fixed = g.options().snapshot().Draw(drawKey(who, r.Conversation, r.ID), r.Versions)
	if cause := g.declare(); cause != nil {
		g.all = g.fixed
		g.logger.Warn("a session that was taken over continues without its client's tools", "reason", cause.Reason, "error", cause.Message)
	}
	g.tools = g.options().toolsFor(g.agent, g.all,
		registry.Session{UserID: who.String(), Vouched: r.Vouched, Scopes: r.Scopes})
	was, err := readState(t.Checkpoint.State)
	if err != nil {
		g.logger.Error("a checkpoint cannot be read; only the history is restored", "error", err)
		was.State.Turn = max(t.Checkpoint.Turn, 0) // numbers must not repeat
	}
	g.Ticket = handoff.Ticket{
		SessionID: r.ID, User: who, Vouched: r.Vouched, Scopes: r.Scopes, Agent: r.Agent, ConversationID: r.Conversation,
		Context: t.Checkpoint.Earlier, Inspect: r.Inspect, Guarantor: registry.Guarantor{ID: r.Principal, Mark: r.Mark,
			Expires: r.PrincipalExpires},
	}
	g.principal = auth.Principal{Kind: auth.Kind(r.Entry), ID: r.Principal, Mark: r.Mark, Expires: r.PrincipalExpires}
	at := &restoring{taken: t, saved: was, resume: g.start.Resume}
	g.entry, g.mark, g.restoring = EntryTakeover, prompts.MarkOf(was.Mark), at
	g.start = startOf(r, g.start)
	return at, g.options().Transports[g.provider].Capabilities(g.agent.model(g.provider)), nil
}

// After a cause, end reports whether the session is over; otherwise another node may take it.
func (g *startup) continueSession(a *Admission, c Client, t *Taken) (s *session, end bool, cause *Cause) {
	ctx, cancel := context.WithTimeout(g.m.ctx(), takeTime)
	defer cancel()
	at, caps, err := g.prepare(ctx, t)
	switch {
	case err != nil:
		g.logger.Error("a session that was taken over cannot continue", "error", err)
		return nil, true, causeResume
	case !g.options().Policy.Relink || !orchestrator.Replaceable(caps):
		return nil, true, causeResume
	}
	if cause := g.options().blocked(g.User); cause != nil {
		return nil, true, cause
	}
	if cause := a.takePlace(); cause != nil {
		return nil, false, cause
	}
	if sameCredentials(a.Principal, g.principal) {
		g.principal.User, g.principal.Expires, g.principal.Mark = a.Principal.User, a.Principal.Expires, a.Principal.Mark
	}
	if !g.options().stillIn(g.principal) {
		return nil, true, causeResume
	}
	r := t.Record
	at.saved.State.Calls.Questions = g.openQuestions(ctx, r, at)
	setup := g.options().setup(&g.modelRequest, g.provider)
	g.voice, g.instructed = setup.Voice, int64(len(setup.Instructions))
	if end, cause := g.adopt(at); cause != nil {
		return nil, end, cause
	}
	if cause := g.meterUsage(true); cause != nil {
		return nil, false, cause
	}
	at.outcomes = g.outcomes(at.saved.State.Calls.Questions)
	if s, err = newSession(g, g.options(), c, g.noModelOf(r, caps)); err != nil {
		g.logger.Error("a session that was taken over could not begin", "error", err)
		g.leave()
		return nil, false, causeInternal
	}
	s.place = t.Place
	g.m.publish(s, g)
	at.begin(s)
	return s, false, nil
}

func (g *startup) noModelOf(r store.SessionRecord, caps transport.Capabilities) noModel {
	return noModel{transport.Info{Provider: g.provider, Model: r.Model, InputRate: r.InputRate, OutputRate: r.OutputRate,
		Capabilities: caps}}
}

// Each question has the tools of the agent that asked it, or of the current agent if that one is unknown.
func (g *startup) openQuestions(ctx context.Context, r store.SessionRecord, at *restoring) []calls.OpenQuestion {
	open := unseal(at.saved.State.Calls.Questions, at.saved.Questions, r.ID, at.resume.Token)
	for i := range open {
		by := open[i].Agent
		if by.Name == "" || by == (calls.Agent{Name: g.agent.Name, Version: g.agent.Version}) {
			continue
		}
		if a := g.options().pinned(ctx, by.Name, by.Version, g.logger); a.Name == by.Name {
			open[i].Tools = g.options().toolsFor(a, g.all,
				registry.Session{UserID: g.User.String(), Vouched: r.Vouched, Scopes: r.Scopes})
		}
	}
	return open
}

// readState decodes a checkpoint's state, which another version may have written; empty for no data.
func readState(data []byte) (savedState, error) {
	var was savedState
	if len(data) == 0 {
		return was, nil
	}
	if err := json.Unmarshal(data, &was); err != nil {
		return savedState{}, fmt.Errorf("session: the state in the checkpoint: %w", err)
	}
	m := was.State
	switch {
	case m.Turn < 0 || m.Gaps < 0 || m.Gaps > m.Turn:
		return savedState{}, fmt.Errorf("session: the state in the checkpoint: turn %d with %d gaps", m.Turn, m.Gaps)
	case m.Open != nil && (m.Open.Number < 1 || m.Open.Number > m.Turn):
		return savedState{}, fmt.Errorf("session: the state in the checkpoint: turn %d is open, and the last one is %d",
			m.Open.Number, m.Turn)
	}
	was.Transcripts = slices.DeleteFunc(was.Transcripts, func(said *protocol.Transcript) bool { return said == nil })
	return was, nil
}

// After a cause, end reports whether the session is over; otherwise another node may take it.
func (g *startup) adopt(at *restoring) (end bool, cause *Cause) {
	if g.options().Handoffs == nil || g.ConversationID == "" {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(g.m.ctx(), takeTime)
	defer cancel()
	a, err := g.options().Handoffs.Adopt(ctx, g.SessionID, at.taken.Record.Epoch, g.ConversationID, g.User)
	switch {
	case err == nil:
		g.Over, g.WhenLost, at.entries = a.Over, a.WhenLost, a.Entries
		return false, nil
	case errors.Is(err, store.ErrFenced):
		return false, causeMoving // another node has taken it
	case errors.Is(err, store.ErrVoiceActive), errors.Is(err, handoff.ErrTaken):
		return true, causeResume
	}
	g.logger.Error("the conversation of a session that was taken over cannot be reached", "conversation_id", g.ConversationID, "error", err)
	return false, causeStore
}

// outcomes are those of questions answered through the API or expired while no node ran the session, by token.
func (g *startup) outcomes(questions []calls.OpenQuestion) map[string]calls.Outcome {
	ctx, cancel := context.WithTimeout(g.m.ctx(), takeTime)
	defer cancel()
	fates := map[string]calls.Outcome{}
	for _, q := range questions {
		switch g.options().Executor.QuestionState(ctx, q.Name) {
		case execute.QuestionApproved:
			fates[q.Token] = calls.OutcomeApproved
		case execute.QuestionDeclined:
			fates[q.Token] = calls.OutcomeDenied
		case execute.QuestionExpired, execute.QuestionUnknown:
			fates[q.Token] = calls.OutcomeExpired
		case execute.QuestionOpen:
		}
	}
	return fates
}

// Lost is a session without a node: its node is gone or has handed it over.
type Lost struct {
	Record store.SessionRecord
	// Ended: the session has ended on this node, but its record could not be written.
	Ended bool
}

// The bounds of the interval of EndLost. It is normally a third of the time that a client may be absent.
const (
	lostLeast = time.Second
	lostMost  = 10 * time.Second
)

func (o *Options) lostEvery() time.Duration {
	return min(max(o.Policy.ResumeGrace/3, lostLeast), lostMost)
}

// lostKey names a session at one of its owners.
type lostKey struct {
	id    string
	epoch uint64
}

// EndLost ends sessions without a node that were lost longer ago than a client may be absent, until ctx is done. Each
// node may run it; one of them ends each session completely.
func (m *Manager) EndLost(ctx context.Context) {
	if m.options().Cluster == nil {
		return
	}
	since := map[lostKey]time.Time{} // when this node first saw the loss
	next := time.NewTimer(m.options().lostEvery())
	defer next.Stop()
	for {
		since = m.endLost(ctx, since)
		select {
		case <-next.C:
			next.Reset(m.options().lostEvery())
		case <-ctx.Done():
			return
		}
	}
}

func (m *Manager) endLost(ctx context.Context, since map[lostKey]time.Time) map[lostKey]time.Time {
	lost, err := m.options().Cluster.Lost(ctx)
	if err != nil {
		if ctx.Err() == nil {
			m.throttle.Info("the search for sessions of dead gateways failed", "store", "error", err)
		}
		return since
	}
	m.roster.lost.Store(int64(len(lost)))
	now, left := time.Now(), make(map[lostKey]time.Time, len(lost))
	for _, l := range lost {
		key := lostKey{l.Record.ID, l.Record.Epoch}
		from, known := since[key]
		if !known {
			from = now
		}
		switch {
		case m.Draining() || ctx.Err() != nil:
		case l.Ended && m.has(l.Record.ID), now.Sub(from) < m.options().Policy.ResumeGrace:
		default:
			if err := m.endOne(ctx, l, causeGone); err != nil && !errors.Is(err, ErrElsewhere) && !errors.Is(err, ErrNoSession) {
				m.options().Logger.Error("a session of a dead gateway cannot be ended", "session_id", clip(l.Record.ID), "error", err)
			}
		}
		left[key] = from
	}
	return left
}

func (m *Manager) has(id string) bool {
	if m.Holds(id) {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for a := range m.admitted {
		if a.id == id {
			return true
		}
	}
	return false
}

// EndRecorded ends a session without a node, for an operator. found is its record. The error wraps ErrElsewhere if
// another node has the session, ErrNoSession if it is over, or store.ErrUnavailable.
func (m *Manager) EndRecorded(ctx context.Context, found store.SessionRecord) error {
	if m.options().Cluster == nil {
		return ErrNoSession
	}
	return m.endOne(ctx, Lost{Record: found}, causeOperator)
}

// endOne ends a session without a node as its node would have. The error is that of EndRecorded.
func (m *Manager) endOne(ctx context.Context, l Lost, cause *Cause) error {
	leave, first := m.roster.take(l.Record.ID)
	if !first {
		return ErrElsewhere // its client has just returned
	}
	defer leave()
	t, err := m.options().Cluster.Adopt(ctx, l.Record)
	if err != nil {
		return err
	}
	if l.Ended {
		t.Place.Leave()
		return nil
	}
	a := m.AdmitCarried(Visitor{})
	g := &startup{m: m, arrivedAt: time.Now(), entry: EntryTakeover, logger: m.options().Logger.With("session_id", t.Record.ID)}
	g.start = &startMessage{}
	s, err := g.endTaken(ctx, t, cause)
	if err != nil {
		g.leave()
		a.Release()
		t.Place.Leave()
		return err
	}
	s.log().Info("a session without a gateway was ended", "reason", cause.Reason, "epoch", t.Record.Epoch, "given", t.handedOver(),
		"checkpoint_age_ms", g.arrivedAt.Sub(t.Checkpoint.At).Milliseconds())
	m.concludeWhenDone(a, s, g)
	return nil
}

func (g *startup) endTaken(ctx context.Context, t *Taken, cause *Cause) (*session, error) {
	at, caps, err := g.prepare(ctx, t)
	if err != nil {
		return nil, err
	}
	at.saved.State.Calls.Questions = nil // the API takes their answers, as after any end
	if _, no := g.adopt(at); no != nil {
		// The conversation belongs to another session by now.
		g.logger.Warn("the ended session's conversation belongs to another session and stays unchanged",
			"conversation_id", g.ConversationID, "reason", no.Reason)
	}
	if no := g.meterUsage(true); no != nil {
		return nil, no
	}
	s, err := newSession(g, g.options(), nil, g.noModelOf(t.Record, caps))
	if err != nil {
		return nil, err
	}
	if g.Over == nil {
		s.saver = nil
	}
	s.place = t.Place
	s.event(g.started())
	g.m.publish(s, g)
	at.end(s, cause)
	return s, nil
}

func (at *restoring) end(s *session, cause *Cause) {
	s.inbound.Lock()
	defer s.inbound.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	at.settleDraft(s, 0, false)
	s.end(cause)
	at.saved.State.Phase = orchestrator.PhaseEnded // so that the step needs no model
	s.step(orchestrator.Restored{Memory: at.saved.State, StartedAt: at.taken.Record.StartedAt, Epoch: at.taken.Record.Epoch,
		Given: at.taken.handedOver()}, time.Now())
}
