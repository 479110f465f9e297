package session

import (
	"time"

	"voicegw/orchestrator"
	"voicegw/transport"
)

// modelStalled is how long the model may accept no data.
const modelStalled = 15 * time.Second

// writeModel is the pump from the uplink to the model; it runs while something is queued.
func (s *session) writeModel() {
	l := s.model.link()
	stuck := time.AfterFunc(modelStalled, l.stalled)
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
			sent, err := l.sendEntry(e, &in)
			if err != nil {
				s.up.lose(append(batch[i+1:], e))
				l.lost("send", err)
				return // nobody sends after that
			}
			switch {
			case e.record == nil:
			case sent:
				s.audit(*e.record)
			default:
				s.untold(e.record)
			}
		}
	}
}

// sendEntry sends one entry. in is a command for audio that is reused for each entry. It reports
// false for a command that belongs to another link.
func (l *link) sendEntry(e upEntry, in *transport.AudioIn) (sent bool, err error) {
	if e.frame == nil {
		cmd, ours := l.theirs(e.cmd)
		if !ours {
			return false, nil
		}
		return true, l.conn.Send(noDeadline, cmd)
	}
	in.PCM = e.frame.PCM
	err = l.conn.Send(noDeadline, in)
	l.s.model.look.sent(e.frame.PCM, e.again)
	e.frame.Free()
	return true, err
}

// sendDirect sends audio on the goroutine that read it, which saves a hop, as long as nothing is
// queued and the network accepts it at once; again is that of uplink.pushAudio. It reports whether it
// sent the audio.
func (s *session) sendDirect(pcm []byte, again bool) bool {
	if l := s.model.link(); !l.conn.Ready() || !s.up.claim() {
		return false
	}
	defer s.up.release()
	// While the caller has the claim, no other link takes over.
	l := s.model.link()
	s.mic.direct.PCM = pcm
	// The connection keeps what the network does not accept.
	err := l.conn.Send(noDeadline, &s.mic.direct)
	s.model.look.sent(pcm, again)
	if err != nil {
		l.lost("send", err)
	}
	return true
}

// stalled takes it that the model accepts no data.
func (l *link) stalled() {
	if l.s.opts.Policy.Relink && orchestrator.Replaceable(l.info().Capabilities) {
		l.lost("send", errStalled)
		return
	}
	l.s.end(causeStalled)
}
