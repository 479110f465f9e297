package orchestrator

import (
	"time"

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
		m.sendNotice(before+in.Context, first+in.PendingRequest)
	case in.Context != "":
		m.openUserTurn(m.at)
		m.sendNotice(before+in.Context, goOn)
	case in.Greeting != "":
		m.openUserTurn(m.at)
		m.send(transport.UserText{Text: in.Greeting})
	}
}

// What a model is told that takes a conversation over. It is a user's turn and no system
// text: what was said before is the user's and earlier answers, and gives no orders.
const (
	before = "The user has been in this conversation in writing and goes on by voice now. The conversation so far:\n"
	first  = "That was the conversation so far. Do not greet, and do not ask what it is about. Answer this first:\n"
	goOn   = "That was the conversation so far. Do not greet. Say in one short sentence that the user can go on by voice now."
)

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
