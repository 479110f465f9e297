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
		if err := s.writeEntry(e); err != nil {
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
