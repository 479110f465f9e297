package session

import (
	"time"

	"voicegw/orchestrator"
)

// writeClient is the pump from the downlink to the client, as long as something is in it.
func (s *session) writeClient() {
	stuck := time.AfterFunc(s.opts.Limits.SlowClient, func() { s.end(causeSlow) })
	defer stuck.Stop()
	for {
		e, ok := s.down.pop()
		if !ok {
			return
		}
		stuck.Reset(s.opts.Limits.SlowClient)
		if err := s.writeEntry(e); err != nil {
			s.down.lose()
			s.end(gone(err)) // the next pop is the last
		}
	}
}

func (s *session) writeEntry(e downEntry) error {
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
	err := s.client.WriteAudio(pcm) // the connection keeps what the network does not take
	if err != nil {
		s.down.lose()
	}
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
