package voice

import (
	"slices"
	"time"

	"voicegw/audio"
	"voicegw/protocol"
)

// keptSpeech is how much sent audio is kept for another gateway after a takeover: as much as a gateway accepts.
const keptSpeech = 10 * time.Second

// speechLog keeps the user's recent speech so that it can be replayed to another gateway. Positions are bytes on the
// session's input clock (docs/protocol.md).
type speechLog struct {
	rate    int // Hz; zero if nothing is kept
	entries []logEntry
	from    int64 // start of the oldest audio
	to      int64 // end of the newest audio
	// known: the gateway counts the next frame from position to.
	known   bool
	pressed bool // push-to-talk state before the oldest entry

	stoppedMS   int64 // end of the newest reported speech
	stoppedTurn int   // its turn

	replay []logEntry // to be sent again, oldest first
}

type logEntry struct {
	pcm      []byte // nil for the button; read-only
	activity *protocol.InputActivity
}

func (s *speechLog) start(rate int, ms int64) {
	*s = speechLog{rate: rate, known: true}
	s.from = s.bytes(ms)
	s.to = s.from
}

func (s *speechLog) bytes(ms int64) int64 {
	return int64(audio.Bytes(s.rate, time.Duration(ms)*time.Millisecond))
}

func (s *speechLog) add(pcm []byte) {
	if !s.known {
		return
	}
	s.entries = append(s.entries, logEntry{pcm: pcm})
	s.to += int64(len(pcm))
	s.dropBefore(s.to - s.bytes(keptSpeech.Milliseconds()))
}

// press records a change of the button, which precedes the next frame.
func (s *speechLog) press(m *protocol.InputActivity) {
	if s.known {
		s.entries = append(s.entries, logEntry{activity: m})
	}
}

func (s *speechLog) dropBefore(pos int64) {
	for len(s.entries) > 0 {
		one := &s.entries[0]
		if one.activity == nil && s.from+int64(len(one.pcm)) > pos || one.activity != nil && s.from >= pos {
			break
		}
		if one.activity != nil {
			s.pressed = one.activity.Active
		}
		s.from += int64(len(one.pcm))
		*one = logEntry{}
		s.entries = s.entries[1:]
	}
}

// turnEnded drops the speech of a finished turn, which is not replayed.
func (s *speechLog) turnEnded(turn int) {
	if s.known && s.stoppedTurn <= turn {
		s.dropBefore(min(s.bytes(s.stoppedMS), s.to))
	}
}

// forget drops everything: the gateway may not have counted a frame.
func (s *speechLog) forget() { *s = speechLog{rate: s.rate} }

// position returns the kept audio followed by unsent recorded bytes; nil without kept audio.
func (s *speechLog) position(recorded int64) *protocol.ResumeInput {
	if !s.known {
		return nil
	}
	return &protocol.ResumeInput{FromMS: audio.MS(s.rate, int(s.from)), ToMS: audio.MS(s.rate, int(s.to+recorded))}
}

// resumed handles session.started of a resumed session. recorded counts recorded but unsent bytes; the result is how
// many of them the gateway does not need. Audio sent after InputMS was lost with its connection. It is replayed: as
// much as the gateway requests, or otherwise the newest part.
func (s *speechLog) resumed(m *protocol.SessionStarted, recorded int64) (skip int64) {
	at := s.bytes(m.InputMS)
	if !s.known || m.InputAgain && at < s.from {
		s.start(s.rate, m.InputMS)
		return 0
	}
	if !m.InputAgain {
		lost := s.cut(at)
		if m.InputMS > 0 { // without a position the gateway may have all of it
			s.replay = newest(lost, s.bytes(maxUnsent.Milliseconds())-recorded)
		}
		return 0
	}
	s.dropBefore(at)
	var again []logEntry
	if s.pressed {
		again = append(again, logEntry{activity: &protocol.InputActivity{Active: true}})
	}
	for _, one := range s.entries {
		if cut := at - s.from; cut > 0 && one.pcm != nil {
			one.pcm, s.from = one.pcm[cut:], at // within a frame
		}
		again = append(again, one)
	}
	skip = max(at-s.to, 0)
	s.start(s.rate, m.InputMS) // a second gateway may request it too
	s.replay = again
	return skip
}

// cut removes audio after a position, and the button change at it, which may have arrived: the gateway counts it once.
func (s *speechLog) cut(pos int64) (lost []logEntry) {
	n := len(s.entries)
	for n > 0 {
		one := s.entries[n-1]
		if one.pcm != nil && s.to-int64(len(one.pcm))/2 <= pos {
			break
		}
		s.to -= int64(len(one.pcm))
		n--
	}
	lost = slices.Clone(s.entries[n:])
	s.entries = s.entries[:n]
	s.from += pos - s.to // a position in ms is not exact
	s.to = pos
	return lost
}

func newest(lost []logEntry, room int64) (fits []logEntry) {
	for _, one := range slices.Backward(lost) {
		room -= int64(len(one.pcm))
		if one.pcm == nil || room >= 0 {
			fits = append(fits, one)
		}
	}
	slices.Reverse(fits)
	return fits
}

func (s *speechLog) next() (one logEntry, ok bool) {
	if len(s.replay) == 0 {
		return logEntry{}, false
	}
	one = s.replay[0]
	s.replay[0] = logEntry{}
	s.replay = s.replay[1:]
	return one, true
}
