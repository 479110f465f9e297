package session

import (
	"time"

	"voicegw/audio"
	"voicegw/internal/cost"
	"voicegw/orchestrator"
	"voicegw/transport"
)

// talked is what a session counts of its conversation, for a model that does not report what it uses.
type talkCount struct {
	before, now cost.Talk
	speaks      bool // the user, since fromMS on the audio clock
	fromMS      int64
	bytes       int64 // of the model's audio that are counted
	guess       *guess
}

// guess is the estimate of the latest turn, as long as the model may still report what that turn has used.
// A report replaces it: what a turn has used is counted once.
type guess struct {
	turn    int
	of      *link
	counted cost.Sum // for the turn; zero once a report has replaced it
	open    bool     // the turn's response was under way when the turn ended
}

// settle ends the time in which a report belongs to the latest turn: with the next response, or with the next
// turn if the response was over when the turn ended.
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

// overhear counts what a step has taken and decided. The caller must hold mu.
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
			case transport.UserText:
				t.now.Read += int64(len(c.Text))
			case transport.ToolResult:
				t.now.Read += int64(len(c.Output))
			case transport.AddItem:
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

// heard counts the user's speech up to a moment of the audio clock.
func (t *talkCount) heard(ms int64) {
	if t.speaks {
		t.now.Heard += time.Duration(max(ms-t.fromMS, 0)) * time.Millisecond
	}
	t.speaks = false
}

// estimate returns a turn that has ended with what it has probably used and cost, if its model reports
// nothing of that; then it is counted, and s.guessed has it until the next step. The caller must hold mu.
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
	amount := s.opts.Prices.Cost(l.info().Model, time.Now(), usage)
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

// costs notes in the kept conversation by how much the cost of a turn differs from what it has. The caller must
// hold mu.
func (u *usage) adjustTurn(s *session, turn int, more cost.Amount) {
	if s.transcript.Costs(turn, more) {
		s.saver.Save(s.transcript.SoFar(s.state.Spent().Plus(more)))
	}
}
