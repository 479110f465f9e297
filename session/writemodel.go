package session

import (
	"time"

	"voicegw/transport"
)

// writeModel is the pump from the uplink to the model.
func (s *session) writeModel() {
	var batch []upEntry
	var in transport.AudioIn
	for {
		var open bool
		if batch, open = s.up.take(batch); !open {
			return
		}
		for i, e := range batch {
			batch[i] = upEntry{}
			if err := s.sendEntry(e, &in); err != nil {
				s.modelLost("send", err)
				return
			}
		}
		if len(batch) > 0 {
			s.up.release()
			continue
		}
		select {
		case <-s.up.ready:
		case <-s.done:
			return
		}
	}
}

// sendEntry sends one entry; in is the command that carries audio, used again and
// again.
func (s *session) sendEntry(e upEntry, in *transport.AudioIn) error {
	s.sending.Store(time.Now().UnixNano())
	defer s.sending.Store(0)
	if e.frame == nil {
		return s.model.Send(noDeadline, e.cmd)
	}
	in.PCM = e.frame.pcm
	err := s.model.Send(noDeadline, in)
	e.frame.free()
	return err
}

// sendDirect sends audio from the goroutine that read it, which spares a hop, as
// long as nothing is queued and the network takes it at once. It reports whether
// it did.
func (s *session) sendDirect(pcm []byte) bool {
	if !s.model.Ready() || !s.up.claim() {
		return false
	}
	defer s.up.release()
	s.sending.Store(time.Now().UnixNano())
	defer s.sending.Store(0)
	s.directIn.PCM = pcm
	if err := s.model.Send(noDeadline, &s.directIn); err != nil {
		s.modelLost("send", err)
	}
	return true
}

// modelLost ends the session because the model's connection is gone.
func (s *session) modelLost(op string, err error) {
	if s.isOver() {
		return
	}
	s.logger.Warn("model lost", "op", op, "kind", transport.KindOf(err).String(), "error", err)
	s.end(lost(err))
}
