package session

import (
	"time"

	"voicegw/orchestrator"
)

// writeClient is the pump from the downlink to the client. It ends when the
// downlink is finished or the client is gone.
func (s *session) writeClient() {
	for {
		e, ok, done := s.down.pop()
		if done {
			return
		}
		if !ok {
			<-s.down.ready // finish signals, so that this ends
			continue
		}
		err := s.writeEntry(e)
		s.down.release()
		if err != nil {
			s.end(gone(err))
			return
		}
	}
}

func (s *session) writeEntry(e downEntry) error {
	s.writing.Store(time.Now().UnixNano())
	defer s.writing.Store(0)
	if e.frame == nil {
		return s.client.WriteText(e.text)
	}
	err := s.client.WriteAudio(e.frame.pcm)
	e.frame.free()
	if err == nil && e.first {
		s.dispatch(orchestrator.AudioSent{Item: e.item})
	}
	return err
}

// writeDirect writes audio from the goroutine that read it, which spares a hop, as
// long as nothing is queued and the network takes it at once. It reports whether
// it did. What it has written can no longer be flushed, but that is one frame.
func (s *session) writeDirect(item string, pcm []byte) bool {
	if !s.client.Ready() {
		return false
	}
	first, ok := s.down.claim(item, len(pcm))
	if !ok {
		return false
	}
	s.writing.Store(time.Now().UnixNano())
	err := s.client.WriteAudio(pcm)
	s.writing.Store(0)
	s.down.release()
	if err != nil {
		s.end(gone(err))
		return true
	}
	if first {
		s.dispatch(orchestrator.AudioSent{Item: item})
	}
	return true
}
