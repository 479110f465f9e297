package orchestrator

import (
	"fmt"
	"time"

	"voicegw/transport"
)

// farEnd is the model on one connection: it gives one answer at a time, and hears the user during it.
type farEnd struct {
	d      *dialogue
	gone   bool      // the connection was closed by the session
	active string    // the response in progress
	again  bool      // an answer was asked for during it
	hears  string    // the item of the speech that it hears
	downAt time.Time // when its newest event reaches the session
}

func (f *farEnd) name(what string) string {
	f.d.serial++
	return fmt.Sprintf("%s%d", what, f.d.serial)
}

// gives delivers an event to the session, after all earlier ones.
func (f *farEnd) gives(wait time.Duration, in Input) {
	f.downAt = later(f.downAt, f.d.at.Add(wait))
	f.d.after(f.downAt.Sub(f.d.at), func() {
		if !f.gone {
			f.d.take(in)
		}
	})
}

// when is the time of a position on the client's audio clock.
func when(ms int64) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }

// speechBegins interrupts the answer.
func (f *farEnd) speechBegins(p *phrase) {
	f.hears, f.again = f.name("u"), false
	if f.d.caps.SpeechEvents {
		f.gives(f.d.soon(), UserSpeechStarted{Item: f.hears, AudioMS: p.from, At: when(p.from)})
	}
	f.interrupted()
}

// interrupted ends an answer because the model hears the user, or a noise.
func (f *farEnd) interrupted() {
	if f.active != "" && f.d.caps.InterruptNotice {
		f.gives(0, FromModel{transport.Interrupted{}})
	}
	f.ends(transport.ResponseInterrupted)
}

// speechEnds begins an answer. During another one the provider refuses that; an adapter may ask again after it.
func (f *farEnd) speechEnds(p *phrase) {
	item := f.hears
	if f.d.caps.SpeechEvents {
		f.gives(f.d.soon(), UserSpeechStopped{Item: item, AudioMS: p.to, EndAt: when(p.to), SpeechMS: p.to - p.from})
		if f.d.tidy || f.d.rng.IntN(20) > 0 {
			f.gives(0, FromModel{transport.InputCommitted{Item: item}})
		}
	}
	f.d.after(time.Duration(f.d.rng.IntN(1500))*time.Millisecond, func() {
		f.gives(0, FromModel{transport.Transcript{Item: item, Role: transport.RoleUser, Text: "x", Final: true}})
	})
	if f.active == "" {
		f.answers()
		return
	}
	f.gives(0, FromModel{transport.Problem{Err: &transport.Error{Op: "recv", Kind: transport.KindRefused, Code: "conversation_already_has_active_response"}}})
	f.again = f.again || f.d.rng.IntN(2) == 0
}

// command takes a command.
func (f *farEnd) command(cmd transport.Command) {
	switch cmd.(type) {
	case transport.UserText:
		f.ends(transport.ResponseInterrupted)
		f.answers()
	case transport.Interrupt:
		f.ends(transport.ResponseInterrupted)
	case transport.Respond:
		if f.active == "" {
			f.answers()
		} else {
			f.again = true
		}
	}
}

// ends ends the answer in progress.
func (f *farEnd) ends(as transport.ResponseStatus) {
	if f.active == "" {
		return
	}
	f.gives(f.d.soon(), FromModel{transport.ResponseDone{ID: f.active, Status: as}})
	f.active = ""
	if f.again && as == transport.ResponseCompleted {
		f.again = false
		f.answers()
	}
}

// answers begins an answer. Unless the model is tidy, many answers are silent and end in any way, or never.
func (f *farEnd) answers() {
	d, id := f.d, f.name("r")
	f.active = id
	f.gives(d.soon(), FromModel{transport.ResponseStarted{ID: id}})
	then := func(wait time.Duration, do func()) {
		d.after(wait, func() {
			if !f.gone && f.active == id {
				do()
			}
		})
	}
	end := func(as transport.ResponseStatus) func() { return func() { f.ends(as) } }
	kind := d.rng.IntN(12)
	if d.tidy {
		kind = 12
	}
	switch kind {
	case 0, 1:
		then(d.soon(), end(transport.ResponseCompleted))
	case 2:
		then(d.soon(), end(transport.ResponseFailed))
	case 3:
		then(d.soon(), f.interrupted)
	case 4: // it never ends
	case 5:
		then(d.soon(), func() {
			f.gives(0, FromModel{transport.Transcript{Item: f.name("w"), Role: transport.RoleAssistant, Text: "y", Final: true}})
			f.ends(transport.ResponseCompleted)
		})
	default:
		item := f.name("a")
		then(200*time.Millisecond+d.soon(), func() { f.gives(0, AudioBegan{item}) })
		then(700*time.Millisecond, func() {
			f.gives(0, AudioEnded{Item: item, AudioMS: 900})
			f.ends(transport.ResponseCompleted)
		})
	}
}
