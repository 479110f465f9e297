package e2e

import (
	"strings"
	"time"

	"voicegw/protocol"
)

// takenOver is called after a resume. If another gateway took the session, it repeats the open turn.
func (v *visit) takenOver() {
	owner := v.caller.crowd.links.owner(v.session)
	before := v.owner
	if v.owner = owner; before == nil || owner == before {
		return
	}
	v.taken++
	if v.openBefore {
		v.askedAgain = time.Now()
	}
}

// openTurn reports whether the caller waits for an answer that has not begun.
func (v *visit) openTurn() bool {
	for _, t := range v.turns {
		if t.status == "" && !t.audio && !t.failed {
			return true
		}
	}
	return false
}

// hearsAgain handles signs that a turn continues after its gateway's end.
func (v *visit) hearsAgain(m protocol.ServerMessage) {
	if v.askedAgain.IsZero() {
		return
	}
	switch m.(type) {
	case *protocol.TurnStarted, *protocol.TurnEnded, *protocol.Error, *protocol.AudioStart:
		v.askedAgain = time.Time{}
		v.again++
	}
}

// neverSilent: a turn that was open at its gateway's end is repeated by the next one, or fails with an error.
func (e *evidence) neverSilent(f *findings) {
	for _, v := range e.visits {
		if v.askedAgain.IsZero() || e.pulse.between(v.askedAgain, v.overAt) < chaosPatience {
			continue
		}
		f.add("the next gateway repeats a turn", "%s waited for a turn when its gateway ended, and %v after its resume there was no answer\n\t%s", v.name(),
			v.overAt.Sub(v.askedAgain), strings.Join(v.latest, "\n\t"))
	}
}

// killedAfter reports whether an owner of the session was killed soon after a moment.
func (v *visit) killedAfter(at time.Time) bool {
	for _, died := range v.caller.crowd.links.deaths(v.session) {
		if died.justAfter(at, v.caller.crowd.pulse) {
			return true
		}
	}
	return false
}
