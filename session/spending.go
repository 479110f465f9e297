package session

import (
	"cmp"
	"time"

	"voicegw/audio"
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

// meterUsage starts counting, or refuses. goesOn: another process has admitted the session.
func (g *startup) meterUsage(goesOn bool) *Cause {
	counted, no := g.options().Usage.Enter(g.usageOwner(), goesOn)
	if no != nil {
		return limited(no)
	}
	g.account = counted
	return nil
}

// Refuses returns the limit that refuses a client before it connects; nil if none does or it may be returning.
func (m *Manager) Refuses(p auth.Principal) *meter.Refusal {
	who := meter.Who{Key: p.ID}
	if !p.Names() {
		who.User = p.Self().String()
	}
	no := m.options().Usage.Refuses(who, m.options().Policy.ResumeGrace > 0)
	if no != nil {
		m.observe(Refused{limited(no).Reason})
	}
	return no
}

func limited(no *meter.Refusal) *Cause {
	if !no.Day() {
		return causeCrowd
	}
	c := *causeSpent
	c.Until = time.Now().Add(no.RetryIn).UTC().Truncate(time.Second)
	return &c
}

func (l *link) used(ev transport.Usage) {
	s, tokens := l.s, cost.UsageOf(ev.Tokens)
	l.reports.Store(true)
	in := orchestrator.Used{Tokens: ev.Tokens, Cost: l.cost(ev.Model, tokens)}
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

// cost is zero, and not unpriced, for a model that is free. other is another model that the link's model uses; may be
// empty.
func (l *link) cost(other string, u cost.Usage) cost.Amount {
	info := l.info()
	if info.Capabilities.Free && other == "" {
		return cost.Amount{}
	}
	return l.s.opts.Prices.Cost(cmp.Or(other, info.Model), time.Now(), u)
}

// If a report is lower than its estimate, later charges are reduced. The caller must hold mu.
func (u *usage) charge(l *link, more cost.Amount) {
	if u.uncharged = u.uncharged.Plus(more.Micros); u.uncharged > 0 {
		l.observe(Charged{Cost: u.uncharged})
		u.uncharged = 0
	}
}

// turnEnded counts a turn and returns its message, with the cost for an inspecting client. The caller must hold mu.
func (u *usage) turnEnded(a orchestrator.TurnEnded, inspect bool) *protocol.TurnEnded {
	u.meter.Turn()
	u.sum.Turns++
	m := &protocol.TurnEnded{Header: inTurn(a.Turn), Status: string(a.Status),
		Usage: usageOf(a.Usage, a.Cost.Estimated > 0), Latency: latency(a.Latency)}
	if inspect {
		m.Usage.Cost = &protocol.Cost{USDMicros: int64(a.Cost.Micros), Unpriced: a.Cost.Unpriced}
	}
	return m
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

// talkCount measures the conversation, for a model that does not report its usage.
type talkCount struct {
	before, now cost.Talk
	speaks      bool // the user speaks, since fromMS on the audio clock
	fromMS      int64
	bytes       int64 // of the model's audio that were counted
	guess       *guess
}

// guess is the estimate for the latest turn, until the model's report replaces it or can no longer come.
type guess struct {
	turn    int
	of      *link
	counted cost.Sum // for the turn; zero once a report has replaced it
	open    bool     // the turn's response was under way when the turn ended
}

// settle drops the guess at the next response, or at the next turn if the response was over when the turn ended.
func (t *talkCount) settle(in orchestrator.Input, actions []orchestrator.Action) {
	if t.guess == nil {
		return
	}
	over := false
	if m, ok := in.(orchestrator.FromModel); ok {
		_, over = m.Event.(transport.ResponseStarted)
	}
	for _, a := range actions {
		began, ok := a.(orchestrator.TurnStarted)
		over = over || ok && !t.guess.open && began.Turn > t.guess.turn
	}
	if over {
		t.guess = nil
	}
}

// count counts a step's input and actions. The caller must hold mu.
func (u *usage) count(in orchestrator.Input, actions []orchestrator.Action, clock *audioClock) {
	t := &u.talk
	switch in := in.(type) {
	case orchestrator.UserSpeechStarted:
		t.speaks, t.fromMS = true, in.AudioMS
	case orchestrator.UserSpeechStopped:
		t.heard(in.AudioMS)
	case orchestrator.UserActivity:
		if !in.Active {
			t.heard(clock.ms())
		} else {
			t.speaks, t.fromMS = true, clock.ms()
		}
	}
	for _, a := range actions {
		switch a := a.(type) {
		case orchestrator.Command:
			switch c := a.Command.(type) {
			case transport.UserText, transport.ToolResult, transport.AddItem:
				t.now.Read += int64(commandSize(c))
			case transport.Image:
				t.now.Read += imageReads
			}
		case orchestrator.Transcript:
			if a.Role == transport.RoleAssistant && a.Final {
				t.now.Written += int64(len(a.Text))
			}
		}
	}
}

// imageReads is how much text an image counts as: about 260 tokens.
const imageReads = 1024

// heard counts the user's speech up to ms on the audio clock.
func (t *talkCount) heard(ms int64) {
	if t.speaks {
		t.now.Heard += time.Duration(max(ms-t.fromMS, 0)) * time.Millisecond
	}
	t.speaks = false
}

// estimate adds usage if the model reports none; u.guessed holds the cost until the next step. The caller must hold mu.
func (u *usage) estimate(s *session, ended orchestrator.TurnEnded) orchestrator.TurnEnded {
	t, l := &u.talk, s.model.link()
	bytes := s.down.SentBytes() + s.down.FlushedBytes()
	t.now.Spoken += audio.Duration(s.start.OutputRate, int(bytes-t.bytes))
	t.bytes = bytes
	before, now := t.before, t.now
	t.before, t.now = before.Plus(now), cost.Talk{}
	if l.reports.Load() || ended.Usage != (transport.Tokens{}) {
		return ended
	}
	tokens := cost.Estimate(before, now)
	usage := cost.UsageOf(tokens)
	if usage.IsZero() {
		return ended
	}
	amount := l.cost("", usage)
	amount.Estimated = 1
	counted := cost.Sum{Amount: amount, Tokens: usage}
	u.meter.Used(amount, usage)
	u.sum = u.sum.Plus(counted)
	u.charge(l, amount)
	u.guessed = u.guessed.Plus(amount)
	t.guess = &guess{turn: ended.Turn, of: l, counted: counted, open: s.state.Responding()}
	u.adjustTurn(s, ended.Turn, amount)
	ended.Usage, ended.Cost = tokens, amount
	return ended
}

// adjustTurn changes the cost of a turn in the transcript. The caller must hold mu.
func (u *usage) adjustTurn(s *session, turn int, more cost.Amount) {
	if s.transcript.Costs(turn, more) {
		s.saver.Save(s.transcript.SoFar(s.state.Spent().Plus(more)))
	}
}
