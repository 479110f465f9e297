package session

import "time"

// writeClient is the pump from the downlink to the client; it runs while something is queued.
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
	if e.text != nil {
		if err := s.client.WriteText(e.text); err != nil {
			return err
		}
	}
	if e.frame != nil {
		if err := s.client.WriteAudio(e.frame.pcm); err != nil {
			return err
		}
		s.down.written(e)
		e.frame.free()
	}
	if e.tells() {
		s.tellSent()
	}
	return nil
}

// writeDirect writes audio on the goroutine that read it, which saves a hop, as long as nothing is
// queued and the network accepts it at once. It reports whether it wrote the audio. Such audio can
// no longer be flushed, but it is only one frame.
func (s *session) writeDirect(item string, pcm []byte) bool {
	if !s.client.Ready() {
		return false
	}
	if !s.down.claim(item, len(pcm)) {
		return false
	}
	err := s.client.WriteAudio(pcm) // the connection keeps what the network does not accept
	if err != nil {
		s.down.lose()
	}
	s.down.release(item, len(pcm))
	if err != nil {
		s.end(gone(err))
	}
	return true
}
