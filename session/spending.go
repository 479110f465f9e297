package session

import (
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/auth"
	"voicegw/internal/cost"
	"voicegw/internal/meter"
	"voicegw/orchestrator"
	"voicegw/protocol"
	"voicegw/registry/spec"
	"voicegw/transport"
)

// usage is the session's usage and cost. The session's mu guards it.
type usage struct {
	meter     *meter.Session // fixed; nil if nothing counts usage
	sum       cost.Sum       // in this process, and in earlier ones that died
	uncharged cost.Micros    // the part of sum that no Charged has reported; negative after an estimate that was too high
	talk      talkCount
	guessed   cost.Amount // counted by estimate since the last step
}

func (g *startup) usageOwner() meter.Who {
	return meter.Who{User: g.User.String(), Key: g.principal.ID}
}

// meterUsage starts counting the session's usage, or returns the limit that refuses it. goesOn: another process has
// admitted it.
func (g *startup) meterUsage(goesOn bool) *Cause {
	m := g.m
	counted, no := m.options().Usage.Enter(g.usageOwner(), goesOn)
	if no != nil {
		return limited(no)
	}
	g.account = counted
	return nil
}

// Refuses returns the limit that refuses a client before it connects; nil if none does or the client may be returning
// to a session. The user is known only if the credentials name one.
func (m *Manager) Refuses(p auth.Principal) *meter.Refusal {
	who := meter.Who{Key: p.ID}
	if !p.Names() {
		who.User = p.Self().String()
	}
	no := m.options().Usage.Door(who, m.options().Policy.ResumeGrace > 0)
	if no != nil {
		m.observe(Refused{limited(no).Reason})
	}
	return no
}

func limited(no *meter.Refusal) *Cause {
	is := causeCrowd
	if no.Day() {
		is = causeSpent
	}
	c := *is
	if no.Day() {
		c.Until = time.Now().Add(no.RetryIn).UTC().Truncate(time.Second)
	}
	return &c
}

func (l *link) used(t transport.Tokens) {
	s, tokens := l.s, cost.UsageOf(t)
	l.reports.Store(true)
	in := orchestrator.Used{Tokens: t, Cost: s.opts.Prices.Cost(l.info().Model, time.Now(), tokens)}
	s.mu.Lock()
	if g := s.usage.talk.guess; g != nil && g.of == l {
		in.Late, in.Estimate = true, g.counted.Amount
		tokens = tokens.Minus(g.counted.Tokens)
		g.counted = cost.Sum{}
		s.usage.adjustTurn(s, g.turn, in.Cost.Minus(in.Estimate))
	}
	more := cost.Sum{Amount: in.Cost.Minus(in.Estimate), Tokens: tokens}
	s.usage.sum = s.usage.sum.Plus(more)
	s.usage.charge(l, more.Amount)
	s.mu.Unlock()
	s.usage.meter.Used(more.Amount, more.Tokens)
	s.dispatch(in)
}

// charge reports additional cost to the observer. If a report is lower than its estimate, later charges are reduced.
// The caller must hold mu.
func (u *usage) charge(l *link, more cost.Amount) {
	if u.uncharged = u.uncharged.Plus(more.Micros); u.uncharged > 0 {
		l.observe(Charged{Cost: u.uncharged})
		u.uncharged = 0
	}
}

// turnEnded counts a turn that the action ends, and adds its cost to an inspecting client's message. The caller must
// hold mu.
func (u *usage) turnEnded(a orchestrator.Action, m protocol.ServerMessage, inspect bool) {
	ended, ok := a.(orchestrator.TurnEnded)
	if !ok {
		return
	}
	u.meter.Turn()
	u.sum.Turns++
	if m, ok := m.(*protocol.TurnEnded); ok && inspect {
		m.Usage.Cost = &protocol.Cost{USDMicros: int64(ended.Cost.Micros), Unpriced: ended.Cost.Unpriced}
	}
}

func (m *Manager) auditCost(s *session, since time.Time, cause *Cause) cost.Sum {
	s.mu.Lock()
	sum := s.usage.sum
	s.mu.Unlock()
	sum.VoiceMS += time.Since(since).Milliseconds()
	if m.options().Audit == nil || s.opts.Prices == nil {
		return sum
	}
	r := s.identified(audit.Spent(time.Now(), audit.EventSessionCost, spec.ModeVoice, sum, s.opts.Prices.Version, cause.Reason))
	r.KeyID = s.principal.Value().ID
	m.options().Audit(r)
	return sum
}
