package session

import (
	"time"

	"voicegw/audio"
	"voicegw/internal/cost"
	"voicegw/orchestrator"
	"voicegw/transport"
)

// talkCount measures the conversation, for a model that does not report its usage.
type talkCount struct {
	before, now cost.Talk
	speaks      bool // the user speaks, since fromMS on the audio clock
	fromMS      int64
	bytes       int64 // of the model's audio that were counted
	guess       *guess
}

// guess is the estimate for the latest turn. It is kept while the model may still report that turn's usage, which then
// replaces it.
type guess struct {
	turn    int
	of      *link
	counted cost.Sum // for the turn; zero once a report has replaced it
	open    bool     // the turn's response was under way when the turn ended
}

// settle drops the guess when a report can no longer belong to its turn: at the next response, or at the next turn if
// the response was over when the turn ended.
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

// heard counts the user's speech up to ms on the audio clock.
func (t *talkCount) heard(ms int64) {
	if t.speaks {
		t.now.Heard += time.Duration(max(ms-t.fromMS, 0)) * time.Millisecond
	}
	t.speaks = false
}

// estimate returns an ended turn with its estimated usage and cost if the model reports none. u.guessed holds the
// amount until the next step. The caller must hold mu.
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

// adjustTurn changes the cost of a turn in the transcript. The caller must hold mu.
func (u *usage) adjustTurn(s *session, turn int, more cost.Amount) {
	if s.transcript.Costs(turn, more) {
		s.saver.Save(s.transcript.SoFar(s.state.Spent().Plus(more)))
	}
}
