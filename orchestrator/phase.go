package orchestrator

import (
	"time"

	"voicegw/orchestrator/calls"
	"voicegw/prompts"
	"voicegw/registry"
	"voicegw/transport"
)

// Phase is where a session stands. It only ever moves down this list.
type Phase string

// The phases.
const (
	PhaseConnecting Phase = "connecting" // until Began
	PhaseActive     Phase = "active"
	PhaseEnding     Phase = "ending" // a tool ends it: the farewell is still to be heard
	PhaseEnded      Phase = "ended"  // only calls that still run are journalled
)

// Phase returns where the session stands.
func (s State) Phase() Phase { return s.phase }

// applyAll does what the intents of a tool that was called in a turn ask of the session,
// in order, and says which were refused and why.
func (m *machine) applyAll(turn int, intents []registry.Intent) (e calls.Effect) {
	for _, intent := range intents {
		phase := m.phase
		no := m.apply(intent)
		m.do(IntentDecided{Turn: turn, Intent: intent, Phase: phase, Why: no})
		if no != "" {
			e.Refused, e.Why = append(e.Refused, intent), no
			continue
		}
		e.Applied = append(e.Applied, intent)
	}
	return e
}

// apply does what one intent asks, or says why it does not.
func (m *machine) apply(intent registry.Intent) (refusal string) {
	if m.phase == PhaseEnded || m.phase == PhaseConnecting {
		return "the session is " + string(m.phase)
	}
	switch intent.Type {
	case registry.IntentEndVoiceSession:
		return m.endAfter(intent.After)
	case registry.IntentSuppressAudio:
		m.suppressed.audio = intent.Value
	case registry.IntentSuppressTranscript:
		m.suppressed.transcript = intent.Value
	case registry.IntentSetPendingMessage:
		if m.phase == PhaseEnding {
			return "the session is ending: there is no next turn"
		}
		if len(m.notices) >= maxNotices {
			return "as many messages wait as may"
		}
		m.notices = append(m.notices, notice{text: intent.Message, shown: true})
	default:
		return "the intent is unknown"
	}
	return ""
}

// endAfter ends the session now, with the turn, or when the farewell was heard.
func (m *machine) endAfter(after registry.EndAfter) (refusal string) {
	if after == registry.EndNow {
		m.endNow = true
		return ""
	}
	if m.phase == PhaseEnding {
		return "the session is ending already"
	}
	m.phase = PhaseEnding
	if m.response.underWay() {
		m.farewell.response = m.response.id
	}
	from := m.at
	if by := m.line.emptyBy(); by.After(from) {
		from = by // what was said before is heard first
	}
	m.farewell.by = from.Add(m.policy.FarewellWait)
	m.farewell.most = m.farewell.by.Add(maxFarewell)
	m.do(Ending{Reason: EndTool, After: m.farewell.by.Sub(m.at)})
	if after == registry.EndAfterFarewellSpoken {
		m.mute()
	}
	return ""
}

// mute sees to it that nothing which the user says cuts the farewell off.
func (m *machine) mute() {
	if m.user.voice != muted {
		m.user.voice = muted
		m.do(MuteUser{})
	}
}

// maxFarewell is how much longer than Policy.FarewellWait a session goes on for a model
// that does not stop speaking, or a client that does not stop playing.
const maxFarewell = time.Minute

// endsAt is when a session that a tool ends waits no longer: what has been sent until then
// has been heard. Zero if no tool ends it.
func (s State) endsAt() time.Time {
	if !s.ending() {
		return time.Time{}
	}
	at := s.farewell.by
	if n := len(s.line.items); n > 0 {
		if heard := s.line.emptyBy().Add(s.line.patience()); heard.After(at) {
			at = heard
		}
	}
	if at.After(s.farewell.most) {
		return s.farewell.most
	}
	return at
}

// lastWordSaid says that nothing which the model begins now is heard or shown: a tool ends
// the session, and the turn with the farewell is complete.
func (s State) lastWordSaid() bool {
	return s.ending() && (s.turn == nil || s.turn.stage == done)
}

// ending says whether a tool ends the session.
func (s State) ending() bool { return s.phase == PhaseEnding }

// began opens the session: with the pending request, with a conversation that goes on by voice,
// with a greeting, or with nothing.
func (m *machine) began(in Began) {
	m.phase = PhaseActive
	switch {
	case in.PendingRequest != "":
		m.openUserTurn(m.at)
		if in.Context == "" {
			m.say("pending_request", in.PendingRequest)
			return
		}
		m.show("pending_request", in.PendingRequest)
		m.sendNotice(prompts.WrittenBefore(in.Context), prompts.AnswerFirst(in.PendingRequest))
	case in.Context != "":
		m.openUserTurn(m.at)
		m.sendNotice(prompts.WrittenBefore(in.Context), prompts.GoOnByVoice)
	case in.Greeting != "":
		m.openUserTurn(m.at)
		m.send(transport.UserText{Text: in.Greeting})
	}
}
