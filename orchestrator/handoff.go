package orchestrator

import (
	"time"

	"voicegw/prompts"
	"voicegw/transport"
)

// began opens the session: with what the user asked before, with a conversation that goes
// on by voice, with a greeting, or not at all.
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

// Heard is the best guess of how much of a spoken item the client has heard by now, in
// ms of its audio. ok is false for one that is not playing: it was heard to its end, or
// was flushed, or never began.
func (s State) Heard(id string, now time.Time) (ms int64, ok bool) {
	i := s.line.index(id)
	if i < 0 || s.line.over(i, now) {
		return 0, false
	}
	return s.line.heard(i, now), true
}
