package voice

import (
	"slices"
	"time"

	"voicegw/audio"
	"voicegw/protocol"
)

// keptSpeech is how much sent audio is kept for another gateway after a takeover: as much as a gateway accepts.
const keptSpeech = 10 * time.Second

// spoken keeps the user's recent speech so that it can be replayed to another gateway. Positions are bytes on the
// session's input clock (docs/protocol.md).
type spoken struct {
	rate  int // Hz; zero if nothing is kept
	said  []said
	first int   // index of the oldest entry in said
	from  int64 // start of the oldest audio
	to    int64 // end of the newest audio
	// known: the gateway counts the next frame from position to.
	known   bool
	pressed bool // push-to-talk state before the oldest entry

	stoppedMS int64 // end of the newest reported speech, and its turn
	stopped   int

	again []said // to be replayed, oldest first
}

// said is a frame, or a change of the push-to-talk button.
type said struct {
	pcm      []byte // nil for the button; read-only
	activity *protocol.InputActivity
}

func (s *spoken) begins(rate int, ms int64) {
	*s = spoken{rate: rate, known: true}
	s.from = s.bytes(ms)
	s.to = s.from
}

func (s *spoken) bytes(ms int64) int64 {
	return int64(audio.Bytes(s.rate, time.Duration(ms)*time.Millisecond))
}

func (s *spoken) sent(pcm []byte) {
	if !s.known {
		return
	}
	s.said = append(s.said, said{pcm: pcm})
	s.to += int64(len(pcm))
	s.dropBefore(s.to - s.bytes(keptSpeech.Milliseconds()))
}

// press records a change of the button, which precedes the next frame.
func (s *spoken) press(m *protocol.InputActivity) {
	if s.known {
		s.said = append(s.said, said{activity: m})
	}
}

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

// stops handles speech.stopped, and ended handles turn.ended: speech of a finished turn is not replayed.
func (s *spoken) stops(m *protocol.SpeechStopped) { s.stoppedMS, s.stopped = m.AudioMS, m.Turn }

func (s *spoken) ended(turn int) {
	if s.known && s.stopped <= turn {
		s.dropBefore(min(s.bytes(s.stoppedMS), s.to))
	}
}

// doubt records that the gateway may not have counted a frame.
func (s *spoken) doubt() { *s = spoken{rate: s.rate} }

// kept returns the kept audio followed by unsent recorded bytes; nil without kept audio.
func (s *spoken) kept(recorded int64) *protocol.ResumeInput {
	if !s.known {
		return nil
	}
	return &protocol.ResumeInput{FromMS: audio.MS(s.rate, int(s.from)), ToMS: audio.MS(s.rate, int(s.to+recorded))}
}

// resumed handles session.started of a resumed session. recorded counts recorded but unsent bytes; the result is how
// many of them the gateway does not need. Audio sent after InputMS was lost with its connection. It is replayed: as
// much as the gateway requests, or otherwise the newest part.
func (s *spoken) resumed(m *protocol.SessionStarted, recorded int64) (skip int64) {
	at := s.bytes(m.InputMS)
	if !s.known || m.InputAgain && at < s.from {
		s.begins(s.rate, m.InputMS)
		return 0
	}
	if !m.InputAgain {
		lost := s.cut(at)
		if m.InputMS > 0 { // without a position the gateway may have all of it
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
			one.pcm, s.from = one.pcm[cut:], at // within a frame
		}
		again = append(again, one)
	}
	skip = max(at-s.to, 0)
	s.begins(s.rate, m.InputMS) // a second gateway may request it too
	s.again = again
	return skip
}

// cut removes audio after a position, and the button change at it, which may have arrived: the gateway counts it once.
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

// newest returns the newest lost frames that fit in the given number of bytes, with the button.
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

// next returns the next entry to replay.
func (s *spoken) next() (one said, ok bool) {
	if len(s.again) == 0 {
		return said{}, false
	}
	one = s.again[0]
	s.again[0] = said{}
	s.again = s.again[1:]
	return one, true
}
