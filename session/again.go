package session

import (
	"time"

	"voicegw/audio"
	"voicegw/protocol"
)

// hearAgain sets the clock of the client's audio to where the user's speech is settled, in ms, and
// reports whether the client is to send again what it has kept of what came after it. has is nil for a
// client that keeps nothing. The caller must hold inbound, and not hearing or mu.
func (s *session) hearAgain(settled int64, has *protocol.ResumeInput) bool {
	from, again := settled, time.Duration(0)
	if has != nil && from < has.ToMS {
		from = max(from, has.FromMS, has.ToMS-lookLong.Milliseconds())
		again = time.Duration(has.ToMS-from) * time.Millisecond
	}
	s.mic.clock.goOn(from, again)
	s.ear.mu.Lock()
	s.ear.from = from
	s.ear.mu.Unlock()
	s.mic.again = audio.Bytes(s.start.InputRate, again)
	if again > 0 {
		s.log().Info("the client sends again what the model may not have heard", "from_ms", from, "audio_ms", again.Milliseconds())
	}
	return again > 0
}

// hearRest reports whether a client that was lost while it sent audio again is to send the rest of it.
// The caller must hold inbound.
func (s *session) hearRest(has *protocol.ResumeInput) bool {
	rest := 0
	if at := s.mic.clock.ms(); s.mic.again > 0 && has != nil {
		rest = min(s.mic.again, audio.Bytes(s.start.InputRate, time.Duration(has.ToMS-at)*time.Millisecond))
	}
	s.mic.again = max(rest, 0)
	return s.mic.again > 0
}
