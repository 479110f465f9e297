package orchestrator

import (
	"slices"
	"time"

	"voicegw/orchestrator/calls"
	"voicegw/registry"
)

// Phase is the stage of a session. It only moves down this list.
type Phase string

// Phase returns the session's phase.
func (s State) Phase() Phase { return s.phase }

// applyAll applies a tool's intents in order. wanted means that the model waits for the call's answer.
func (m *callControl) applyAll(turn int, intents []registry.Intent, wanted bool) (e calls.Effect) {
	for _, intent := range intents {
		phase := m.phase
		no := m.apply(intent, wanted)
		m.do(IntentDecided{Turn: turn, Intent: intent, Phase: phase, Why: no})
		if no != "" {
			e.Refused, e.Why = append(e.Refused, intent), no
			continue
		}
		e.Applied = append(e.Applied, intent)
	}
	return e
}

func (m *callControl) apply(intent registry.Intent, wanted bool) (refusal string) {
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
			return "too many messages are waiting already"
		}
		m.notices = append(m.notices, notice{text: intent.Message, shown: true})
	case registry.IntentTransferCall:
		return m.endAfter(registry.EndAfterFarewellSpoken)
	case registry.IntentSwitchAgent:
		return m.toolSwitches(intent, wanted)
	case registry.IntentSayExactly:
		return m.notSaid()
	default:
		return "the intent is unknown"
	}
	return ""
}

func (m *callControl) endAfter(after registry.EndAfter) (refusal string) {
	if after == registry.EndNow {
		m.endNow = true
		return ""
	}
	if m.phase == PhaseEnding {
		return "the session is ending already"
	}
	m.phase = PhaseEnding
	if m.response.underWay {
		m.farewell.response = m.response.id
	}
	from := m.at
	if by := m.line.emptyBy(); by.After(from) {
		from = by // earlier words play first
	}
	m.farewell.by = from.Add(farewellWait)
	m.farewell.most = m.farewell.by.Add(maxFarewell)
	m.do(Ending{Reason: m.endReason(), After: m.farewell.by.Sub(m.at)})
	if after == registry.EndAfterFarewellSpoken {
		m.mute()
	}
	return ""
}

const (
	// farewellWait is how long an ending session waits for the farewell, after the user has heard everything before
	// it. A farewell that was sent is heard in full.
	farewellWait = 12 * time.Second
	maxFarewell  = time.Minute // how much longer a session lasts if the model keeps speaking or the client keeps playing
)

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

// lastWordSaid reports whether the farewell is complete, so that nothing more of the model is heard or shown.
func (s State) lastWordSaid() bool { return s.ending() && (s.turn == nil || s.turn.stage == done) }

func (s State) ending() bool { return s.phase == PhaseEnding }

// breakOff ends the session during playback: an answer that was not heard in full counts as interrupted.
func (m *callControl) breakOff(reason EndReason) {
	if t := m.turn; m.flush(FlushSessionEnd) && t.cut == uncut {
		t.cut = cutOff
	}
	m.end(reason)
}

func (m *callControl) end(reason EndReason) {
	if m.turn != nil {
		m.endTurn()
	}
	m.phase = PhaseEnded
	m.keepContexts()
	m.exactsOver()
	end := End{Reason: reason}
	if reason == EndLost {
		end.Kind = m.link.kind
	}
	m.do(end)
	m.nothingMore()
}

// Phases.
const (
	PhaseConnecting Phase = "connecting" // until Began
	PhaseActive     Phase = "active"
	PhaseEnding     Phase = "ending" // the session ends after the farewell
	PhaseEnded      Phase = "ended"  // running calls are still recorded
)

// ClientLost reports the loss of the client's connection. The session continues for Policy.ResumeGrace.
type ClientLost struct{}

// ClientBack reports that the client has resumed.
type ClientBack struct {
	Again []Again  // the items whose sent audio is sent again because the client did not receive it
	Gone  []string // the items that the client knows but lacks, and that cannot be sent again. They are flushed.
}

// Again is an item that is sent again in part.
type Again struct {
	Item string
	Has  time.Duration // the part of the item that the client has
}

type absence struct {
	since time.Time // when the client was lost; zero while it is connected
	back  time.Time // when it last resumed; zero if it never left
}

func (s State) away() bool { return !s.absence.since.IsZero() }

// AwaySince returns when the client was lost; zero if it is connected.
func (s State) AwaySince() time.Time { return s.absence.since }

// releaseWait is how long a lost client may hold its push-to-talk button: as long as a gap in other speech may be.
const releaseWait = 2 * time.Second

func goneAt(s State) time.Time {
	if !s.away() {
		return time.Time{}
	}
	return s.absence.since.Add(s.policy.ResumeGrace)
}

// releasedAt returns when the push-to-talk button of a lost client counts as released.
func releasedAt(s State) time.Time {
	if !s.away() || s.user.voice != pressing {
		return time.Time{}
	}
	return s.absence.since.Add(releaseWait)
}

func (ClientLost) take(m *machine) {
	if m.away() {
		return
	}
	m.absence.since, m.line.stopped = m.at, m.at
	if m.policy.ResumeGrace <= 0 {
		m.end(EndGone)
	}
}

func (in ClientBack) take(m *machine) {
	if !m.away() {
		return
	}
	gone := m.at.Sub(m.absence.since)
	m.absence = absence{back: m.at}
	m.line.goOn(gone)
	for _, a := range in.Again {
		m.line.again(a)
	}
	lost := func(it item) bool { return slices.Contains(in.Gone, it.id) }
	if m.flushThose(FlushConnectionLost, lost) {
		m.turn.lost = true
	}
}
