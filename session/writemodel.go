package session

import (
	"time"

	"voicegw/transport"
)

// modelStalled is how long the model may accept no data.
const modelStalled = 15 * time.Second

// writeModel is the pump from the uplink to the model; it runs while something is queued.
func (s *session) writeModel() {
	stuck := time.AfterFunc(modelStalled, func() { s.end(causeStalled) })
	defer stuck.Stop()
	var batch []upEntry
	var in transport.AudioIn
	for {
		var ok bool
		if batch, ok = s.up.take(batch); !ok {
			return
		}
		for i, e := range batch {
			batch[i] = upEntry{}
			stuck.Reset(modelStalled)
			if err := s.sendEntry(e, &in); err != nil {
				s.up.lose(append(batch[i+1:], e))
				s.modelLost("send", err)
				return // nobody sends after that
			}
			if e.record != nil {
				s.audit(*e.record)
			}
		}
	}
}

// sendEntry sends one entry. in is a command for audio that is reused for each entry.
func (s *session) sendEntry(e upEntry, in *transport.AudioIn) error {
	if e.frame == nil {
		return s.model.Send(noDeadline, e.cmd)
	}
	in.PCM = e.frame.pcm
	err := s.model.Send(noDeadline, in)
	e.frame.free()
	return err
}

// sendDirect sends audio on the goroutine that read it, which saves a hop, as long as nothing is
// queued and the network accepts it at once. It reports whether it sent the audio.
func (s *session) sendDirect(pcm []byte) bool {
	if !s.model.Ready() || !s.up.claim() {
		return false
	}
	defer s.up.release()
	s.directIn.PCM = pcm
	// The connection keeps what the network does not accept.
	if err := s.model.Send(noDeadline, &s.directIn); err != nil {
		s.modelLost("send", err)
	}
	return true
}

// modelLost ends the session because the model's connection is lost.
func (s *session) modelLost(op string, err error) {
	if s.isOver() {
		return
	}
	s.logger.Warn("model lost", "op", op, "kind", transport.KindOf(err).String(), "error", err)
	s.end(lost(err))
}
