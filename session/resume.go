package session

import (
	"context"
	"time"
	"unique"

	"voicegw/internal/auth"
	"voicegw/internal/user"
	"voicegw/orchestrator"
	"voicegw/protocol"
	"voicegw/store"
)

// resume owns c. It returns the session if it was taken over from another node.
func (g *startup) resume(a *Admission, c Client) *session {
	id := ""
	if g.start.Resume != nil {
		id = g.start.Resume.SessionID
	}
	var s *session
	cause := causeResume // another node carries only returning clients
	if g.start.Resume != nil {
		s, cause = g.findSession(a, c)
	}
	if cause != nil {
		g.m.throttle.Info("resume refused", cause.Reason, "session_id", clip(id), "addr", a.addr.String())
		g.m.observe(Returned{Outcome: cause.Reason})
		refuse(c, cause)
	}
	return s
}

// findSession connects a client to its session on any node. It returns the session if it was taken over.
func (g *startup) findSession(a *Admission, c Client) (taken *session, cause *Cause) {
	s := g.m.roster.visit(g.start.Resume.SessionID)
	if s == nil {
		return g.resumeElsewhere(a, c)
	}
	if s.isOver() && s.hasLeft(locked(s, s.model.currentHandover)) {
		s.visitors.Done() // carrying may take long
		return g.resumeElsewhere(a, c)
	}
	defer s.visitors.Done()
	if cause = g.m.resume(s, a, c, g.start); cause == nil {
		back := Returned{Outcome: ReturnedHere, Took: time.Since(g.arrivedAt)}
		g.m.observe(back)
		s.mu.Lock()
		s.watch.event(back)
		s.mu.Unlock()
	}
	return nil, cause
}

func (m *Manager) resume(s *session, a *Admission, c Client, start *startMessage) *Cause {
	s.inbound.Lock()
	s.mu.Lock()
	at, cause := (&comeback{s, a, c, start}).attach()
	s.mu.Unlock()
	s.inbound.Unlock()
	switch {
	case cause == causeResume:
		return m.refuseResume(start.Resume.SessionID)
	case cause != nil:
		return cause
	}
	at.start()
	return nil
}

func (m *Manager) refuseResume(id string) *Cause {
	if !m.attempts.refuse(id, time.Now()) {
		return causeResumes
	}
	return causeResume
}

// comeback is a client that returns to a local session.
type comeback struct {
	s     *session
	a     *Admission
	c     Client
	start *startMessage
}

// The caller must hold inbound and mu, and then start the attachment.
func (b *comeback) attach() (*attachment, *Cause) {
	s, a, c, start := b.s, b.a, b.c, b.start
	now, r := time.Now(), start.Resume
	if c.Gone() {
		return nil, causeGone // it may have reconnected since; this connection must not replace that one
	}
	if !s.client.tokens.valid(r.Token, now) || a.Origin != s.origin || !namesUser(start, s.user.String(), clientID(s.start)) ||
		!mayComeBack(a.Principal, s.principal.Value(), s.user.String()) {
		return nil, causeResume
	}
	if cause := s.movedAway(); cause != nil {
		return nil, cause
	}
	if cause := b.fits(); cause != nil {
		return nil, cause
	}
	if cause := s.opts.blocked(s.user); cause != nil {
		s.end(cause)
		return nil, cause
	}
	if old := s.client.attachment(); old != nil {
		s.stepSent(now)
		old.detach(causeElsewhere)
		s.step(orchestrator.ClientLost{}, now)
		if cause := s.movedAway(); cause != nil { // without a client it leaves a draining process
			s.shown.state(s)
			s.setClock()
			return nil, cause
		}
	}
	away := now.Sub(s.state.AwaySince())
	back := s.down.Resume(r.LastSeq, r.Audio, away, b.barelyHeard)
	at := s.attach(c)
	token := s.client.tokens.next(r.Token, now)
	who := s.principal.Value()
	if sameCredentials(a.Principal, who) {
		who.Expires, who.Mark = a.Principal.Expires, a.Principal.Mark // a token may have been renewed
		s.principal = unique.Make(who)
	}
	s.place.Update(func(r *store.SessionRecord) {
		s.client.tokens.writeTo(r)
		r.State, r.PrincipalExpires, r.Mark = store.SessionLive, who.Expires, who.Mark
	})
	safe := s.client.tokens.saved(s.place.Written())
	recalled := s.client.state.messages() // before the next step, whose messages are sent anyway
	s.step(orchestrator.ClientBack{Again: back.Again, Gone: back.Gone}, now)
	s.step(orchestrator.Lapse{At: s.lapses()}, now)
	s.byClient.askAgain()
	started := s.startedMessage(token, true, back.Snapshot)
	started.InputAgain = s.mic.rest(r.Input)
	first := []protocol.ServerMessage{started}
	if back.Snapshot {
		first = append(first, recalled...)
	}
	if err := s.down.Lead(first...); err != nil {
		s.log().Error("encoding a message", "error", err)
		s.end(causeInternal)
	}
	s.admission.transferTo(a)
	s.down.Attach(at.gen)
	s.welcome(at.gen, safe)
	s.shown = inspector{} // a reloaded page has no view
	s.shown.state(s)
	s.setClock()
	s.log().Info("client back", "attachment", at.gen, "away_ms", away.Milliseconds(), "last_seq", r.LastSeq, "snapshot", back.Snapshot,
		"addr", a.addr.String(), "client", clientName(start))
	return at, nil
}

// firstSound: an item starts again if at most this much was heard. A player reports every 200 ms.
const firstSound = 250 * time.Millisecond

// barelyHeard reports whether an item had just begun when the client was lost. The caller must hold mu.
func (b *comeback) barelyHeard(item string) bool {
	s := b.s
	ms, sounds := s.state.Heard(item, s.state.AwaySince())
	return sounds && ms < firstSound.Milliseconds()
}

// movedAway refuses for a session that is over or being handed over; nil if it runs here. The caller must hold mu.
func (s *session) movedAway() *Cause {
	switch over := s.isOver(); {
	case !over && s.model.handover == nil:
		return nil
	case !over, s.hasLeft(s.model.handover):
		return causeMoving // the client retries when the outcome is known
	}
	return causeResume
}

// hasLeft reports whether another process continues a session that is over here, or may. g is its handover.
func (s *session) hasLeft(g *handover) bool { return g != nil || s.cause().continues() }

// known is the name that the client gave at the beginning; a ticket's user may differ.
func namesUser(start *startMessage, who, known string) bool {
	return start.Client == nil || start.Client.ID == "" || start.Client.ID == who || start.Client.ID == known
}

// mayComeBack reports whether visitor may resume a session of the user who that began with the principal in. The token
// was checked before. It suffices for sessions that began with a ticket or without credentials, except for visitors
// with another user's name. Other sessions require the same principal.
func mayComeBack(visitor, in auth.Principal, who string) bool {
	switch in.Kind {
	case "", auth.KindTicket, auth.KindLocal, auth.KindOpen:
		self := visitor.Self()
		return visitor.Names() || self.IsZero() || self.String() == who
	case auth.KindConsole: // a console's token ends with its gateway
		return visitor.Unauthenticated() || visitor.Kind == in.Kind
	default:
		return sameCredentials(visitor, in)
	}
}

func sameCredentials(visitor, in auth.Principal) bool {
	return visitor.ID == in.ID && visitor.Kind == in.Kind && auth.SameMark(visitor.Mark, in.Mark)
}

func (b *comeback) fits() *Cause {
	s, start := b.s, b.start
	if cause := sameRates(start, s.start.InputRate, s.start.OutputRate); cause != nil {
		return cause
	}
	if start.Resume.LastSeq > s.down.LastSeq() {
		return wrongField("resume.last_seq", "is higher than every seq of the session (%d).", s.down.LastSeq())
	}
	return nil
}

func sameRates(start *startMessage, input, output int) *Cause {
	switch {
	case start.InputRate != input:
		return wrongField("input_rate", "must be that of the session, %d Hz.", input)
	case start.OutputRate != output:
		return wrongField("output_rate", "must be that of the session, %d Hz.", output)
	}
	return nil
}

// End ends a session for an operator. It reports whether it ran here; a handed-over session does not.
func (m *Manager) End(id string) bool {
	s := m.roster.visit(id)
	if s == nil {
		return false
	}
	defer s.visitors.Done()
	s.end(causeOperator)
	return !s.cause().continues()
}

// Runs reports whether the session runs on this node, so that its client can resume here.
func (m *Manager) Runs(id string) bool {
	s := m.roster.get(id)
	return s != nil && !s.isOver()
}

// Holds reports whether the session runs here or is being taken over: its client must retry.
func (m *Manager) Holds(id string) bool {
	return m.roster.isTaking(id) || m.Runs(id)
}

// EndDetached ends the voice sessions of a user's conversation whose client is absent, because the conversation
// continues elsewhere. It waits for the handback until ctx is done.
func (m *Manager) EndDetached(ctx context.Context, conversationID string, who user.User) {
	if conversationID == "" {
		return
	}
	for _, s := range m.roster.away() {
		if s.start.ConversationID != conversationID || s.user != who {
			continue
		}
		s.end(causeText)
		select {
		case <-s.left:
		case <-ctx.Done():
		}
	}
}
