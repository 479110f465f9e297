package voice

import (
	"time"

	"voicegw/protocol"
)

const (
	// maxLate is the lateness at which a frame and those after it are dropped.
	maxLate = time.Second
	// maxUnsent limits the audio recorded without a connection and sent later: as much as a gateway accepts at once.
	maxUnsent = 15 * time.Second
)

// input sends the user's speech: the frames of the microphone, and first, after a resume, those to be replayed.
type input struct {
	// Fixed after New.
	o        *Options
	observer Observer
	send     func(protocol.ClientMessage)

	mic *microphone // nil without a microphone, and before the session
	log speechLog
	// pressed is the exchange that holds the push-to-talk button, or nil.
	pressed *Exchange
	// catchingUp: audio recorded without a connection is being sent, at most limit of it.
	catchingUp bool
	limit      time.Duration
	// replayed: the gateway requested speech again at the last resume.
	replayed bool
}

// start begins the session's audio. With resumable, speech is kept for another gateway.
func (in *input) start(now time.Time, m *protocol.SessionStarted, resumable bool) {
	if !in.o.Microphone {
		return
	}
	if resumable {
		in.log.start(m.InputRate, m.InputMS)
	}
	in.mic = newMicrophone(m.InputRate, in.o.Frame, in.o.Silence, now)
}

func (in *input) press(m *protocol.InputActivity) {
	in.send(m)
	in.log.press(m)
}

func (in *input) speak(now time.Time, x *Exchange) {
	if in.o.PushToTalk {
		in.press(&protocol.InputActivity{Active: true})
		in.pressed = x
	}
	r := x.Words.Recording
	start := in.mic.say(now, r)
	x.Onset, x.Spoken = start.Add(r.Onset()), start.Add(r.End())
}

func (in *input) idle() bool { return in.mic == nil || in.mic.idle() }

// frame returns the next frame if it is due, and its due time.
func (in *input) frame(now time.Time) (pcm []byte, due time.Time, ok bool) {
	if in.mic == nil {
		return nil, due, false
	}
	if one, ok := in.log.next(); ok {
		if one.activity != nil {
			in.press(one.activity)
			return nil, due, false
		}
		in.log.add(one.pcm)
		return one.pcm, now, true
	}
	if due = in.mic.due(); now.Before(due) {
		in.catchingUp = false
		return nil, due, false
	}
	late := maxLate
	if in.catchingUp {
		late += in.limit
	}
	if now.Sub(due) > late {
		in.observer.Happened(now, Event{Kind: Dropped, N: in.mic.skip(now.Add(-in.mic.length))})
		due = in.mic.due()
	}
	pcm = in.mic.take()
	in.log.add(pcm)
	if x := in.pressed; x != nil && !x.Spoken.After(in.mic.due().Add(-in.mic.length)) {
		in.press(&protocol.InputActivity{})
		in.pressed, x.Known = nil, now
	}
	return pcm, due, true
}

// position describes the audio for a resume; nil if nothing is kept.
func (in *input) position(now time.Time) *protocol.ResumeInput {
	if in.mic == nil {
		return nil
	}
	return in.log.position(in.mic.recorded(now))
}

// resumed replays the speech that the new gateway requests after a takeover, and otherwise the newest part of the lost
// and unsent speech. It reports whether changes of the button that were not sent are void, because the replay has them.
func (in *input) resumed(now time.Time, m *protocol.SessionStarted) (replaysPresses bool) {
	in.catchingUp, in.limit, in.replayed = true, maxUnsent, m.InputAgain
	if in.mic == nil {
		return false
	}
	before := now.Add(-maxUnsent)
	skip := in.log.resumed(m, min(in.mic.recorded(now), in.log.bytes(maxUnsent.Milliseconds())))
	if m.InputAgain {
		in.limit = keptSpeech
		before = in.mic.due().Add(time.Duration(skip/int64(in.mic.bytes)) * in.mic.length)
	}
	if n := in.mic.skip(before); n > 0 {
		in.observer.Happened(now, Event{Kind: SpeechLost, N: n})
	}
	return m.InputAgain || len(in.log.replay) > 0
}
