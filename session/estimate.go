package session

import (
	"time"

	"voicegw/audio"
	"voicegw/cost"
	"voicegw/orchestrator"
	"voicegw/transport"
)

// talked is what a session counts of its conversation, for a model that does not report what it uses.
type talked struct {
	before, now cost.Talk
	speaks      bool // the user, since fromMS on the audio clock
	fromMS      int64
	bytes       int64 // of the model's audio that are counted
}

// overhear counts what a step has taken and decided. The caller must hold mu.
func (s *session) overhear(in orchestrator.Input, actions []orchestrator.Action) {
	t := &s.talked
	switch in := in.(type) {
	case orchestrator.UserSpeechStarted:
		t.speaks, t.fromMS = true, in.AudioMS
	case orchestrator.UserSpeechStopped:
		t.heard(in.AudioMS)
	case orchestrator.UserActivity:
		if !in.Active {
			t.heard(s.clock.ms())
		} else {
			t.speaks, t.fromMS = true, s.clock.ms()
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
				t.now.Read += int64(wordsOf(c))
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
func (t *talked) heard(ms int64) {
	if t.speaks {
		t.now.Heard += time.Duration(max(ms-t.fromMS, 0)) * time.Millisecond
	}
	t.speaks = false
}

// estimate returns a turn that has ended with what it has probably used and cost, if its model reports
// nothing of that; then it is counted, and s.guessed has it until the next step. The caller must hold mu.
func (s *session) estimate(ended orchestrator.TurnEnded) orchestrator.TurnEnded {
	t, l := &s.talked, s.linked.Load()
	bytes := s.down.sentBytes() + s.down.flushedBytes()
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
	s.account.Used(amount, usage)
	s.sum = s.sum.Plus(cost.Sum{Amount: amount, Tokens: usage})
	s.guessed = s.guessed.Plus(amount)
	ended.Usage, ended.Cost = tokens, amount
	return ended
}
