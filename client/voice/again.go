package voice

import (
	"slices"
	"time"

	"voicegw/audio"
	"voicegw/protocol"
)

// keptSpeech is how much of what was sent is kept, in case the gateway dies before it has handled it: as
// much as a gateway takes again.
const keptSpeech = 10 * time.Second

// spoken is what was sent of the user's speech and that another gateway may ask for again, on the
// session's input clock (docs/protocol.md). Positions are in bytes.
type spoken struct {
	rate  int // Hz; zero if nothing is kept
	said  []said
	first int   // index of the oldest entry in said
	from  int64 // where the oldest audio begins
	to    int64 // where the newest audio ends
	// known means that to is the position of the next frame, as the gateway counts.
	known   bool
	pressed bool // the push-to-talk button was, before the oldest entry

	stoppedMS int64 // where the newest speech that was reported has ended, stopped its turn
	stopped   int

	again []said // still to be sent again, oldest first
}

// said is a frame, or the push-to-talk button.
type said struct {
	pcm      []byte // nil for the button; not to be changed
	activity *protocol.InputActivity
}

// begins takes a session.started.
func (s *spoken) begins(rate int, ms int64) {
	*s = spoken{rate: rate, known: true}
	s.from = s.bytes(ms)
	s.to = s.from
}

func (s *spoken) bytes(ms int64) int64 {
	return int64(audio.Bytes(s.rate, time.Duration(ms)*time.Millisecond))
}

// sent keeps a frame that is sent.
func (s *spoken) sent(pcm []byte) {
	if !s.known {
		return
	}
	s.said = append(s.said, said{pcm: pcm})
	s.to += int64(len(pcm))
	s.dropBefore(s.to - s.bytes(keptSpeech.Milliseconds()))
}

// press keeps a press or the release of the button, which goes before the next frame.
func (s *spoken) press(m *protocol.InputActivity) {
	if s.known {
		s.said = append(s.said, said{activity: m})
	}
}

// dropBefore forgets what ends before a position.
func (s *spoken) dropBefore(pos int64) {
	for s.first < len(s.said) {
		one := &s.said[s.first]
		if one.activity == nil && s.from+int64(len(one.pcm)) > pos || one.activity != nil && s.from >= pos {
			break
		}
		if one.activity != nil {
			s.pressed = one.activity.Active
		}
		s.from += int64(len(one.pcm))
		*one = said{}
		s.first++
	}
	if s.first > len(s.said)/2 {
		n := copy(s.said, s.said[s.first:])
		clear(s.said[n:])
		s.said, s.first = s.said[:n], 0
	}
}

// stops takes speech.stopped, and ended turn.ended: speech whose turn is over is not said again.
func (s *spoken) stops(m *protocol.SpeechStopped) { s.stoppedMS, s.stopped = m.AudioMS, m.Turn }

func (s *spoken) ended(turn int) {
	if s.known && s.stopped <= turn {
		s.dropBefore(min(s.bytes(s.stoppedMS), s.to))
	}
}

// doubt takes it that the gateway has not counted a frame.
func (s *spoken) doubt() { *s = spoken{rate: s.rate} }

// kept returns what is kept, together with so many bytes that were recorded and not sent; nil if
// nothing is.
func (s *spoken) kept(recorded int64) *protocol.ResumeInput {
	if !s.known {
		return nil
	}
	return &protocol.ResumeInput{FromMS: audio.MS(s.rate, int(s.from)), ToMS: audio.MS(s.rate, int(s.to+recorded))}
}

// resumed takes the session.started of a session that goes on, and returns how much of what was recorded
// and not sent is not asked for; recorded is all of that. What was sent beyond InputMS was lost with its
// connection and is sent again: as much as the gateway asks for, otherwise the newest of it.
func (s *spoken) resumed(m *protocol.SessionStarted, recorded int64) (skip int64) {
	at := s.bytes(m.InputMS)
	if !s.known || m.InputAgain && at < s.from {
		s.begins(s.rate, m.InputMS)
		return 0
	}
	if !m.InputAgain {
		lost := s.cut(at)
		if m.InputMS > 0 { // a gateway that does not tell may have it all
			s.again = newest(lost, s.bytes(kept.Milliseconds())-recorded)
		}
		return 0
	}
	s.dropBefore(at)
	var again []said
	if s.pressed {
		again = append(again, said{activity: &protocol.InputActivity{Active: true}})
	}
	for _, one := range s.said[s.first:] {
		if cut := at - s.from; cut > 0 && one.pcm != nil {
			one.pcm, s.from = one.pcm[cut:], at // the position lies within a frame
		}
		again = append(again, one)
	}
	skip = max(at-s.to, 0)
	s.begins(s.rate, m.InputMS) // what is sent again is kept again
	s.again = again
	return skip
}

// cut takes away what was sent after a position, and the button at it, which may have arrived: the gateway
// counts it once.
func (s *spoken) cut(pos int64) (lost []said) {
	n := len(s.said)
	for n > s.first {
		one := s.said[n-1]
		if one.pcm != nil && s.to-int64(len(one.pcm))/2 <= pos {
			break
		}
		s.to -= int64(len(one.pcm))
		n--
	}
	lost = slices.Clone(s.said[n:])
	s.said = s.said[:n]
	s.from += pos - s.to // a position in ms is not exact
	s.to = pos
	return lost
}

// newest returns of what was lost the newest frames that have room in so many bytes, and the button.
func newest(lost []said, room int64) (again []said) {
	for _, one := range slices.Backward(lost) {
		room -= int64(len(one.pcm))
		if one.pcm == nil || room >= 0 {
			again = append(again, one)
		}
	}
	slices.Reverse(again)
	return again
}

// next returns what is to be sent again next; ok is false if nothing is.
func (s *spoken) next() (one said, ok bool) {
	if len(s.again) == 0 {
		return said{}, false
	}
	one = s.again[0]
	s.again[0] = said{}
	s.again = s.again[1:]
	return one, true
}
