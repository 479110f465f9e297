package session

import (
	"voicegw/session/downlink"
)

import "time"

// writeClient writes the downlink's entries to an attachment; it runs while something is queued.
func (s *session) writeClient(gen int) {
	a := s.client.attachment()
	if a == nil || a.gen != gen {
		return // it was lost before the start
	}
	stuck := time.AfterFunc(s.opts.Limits.SlowClient, func() { a.lost(causeSlow) })
	defer stuck.Stop()
	for {
		e, ok := s.down.Pop(gen)
		if !ok {
			return
		}
		stuck.Reset(s.opts.Limits.SlowClient)
		if err := a.writeEntry(e); err != nil {
			a.cannotWrite(err) // the next Pop fails
		}
	}
}

func (a *attachment) writeEntry(e downlink.Entry) error {
	s := a.s
	if e.Text != nil {
		if err := a.conn.WriteText(e.Text); err != nil {
			return err
		}
	}
	if e.Frame != nil {
		if err := a.conn.WriteAudio(e.Frame.PCM); err != nil {
			return err
		}
		s.down.Written(a.gen, e)
		e.Frame.Free()
	}
	if e.Reported() {
		s.reportSent()
	}
	return nil
}

// writeDirect writes audio on the goroutine that read it, which saves a hop, if nothing is queued and the network
// accepts it at once. It reports whether it did. One frame of audio can then not be flushed.
func (a *attachment) writeDirect(item string, pcm []byte) bool {
	if a == nil || !a.conn.Ready() || !a.s.down.Claim(a.gen, item, pcm) {
		return false
	}
	err := a.conn.WriteAudio(pcm) // the connection buffers the rest
	if err != nil {
		a.cannotWrite(err)
	}
	a.s.down.Release(a.gen, item, len(pcm))
	return true
}
