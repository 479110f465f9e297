package session

import (
	"time"

	"voicegw/orchestrator"
	"voicegw/transport"
)

// modelStalled is how long the model may accept no data.
const modelStalled = 15 * time.Second

// writeModel sends the uplink's entries to the model; it runs while something is queued.
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
				s.up.dropRecords(append(batch[i+1:], e))
				l.lost("send", err)
				return // no writer runs after that
			}
			switch {
			case e.record == nil:
			case sent:
				s.audit(*e.record)
			default:
				s.audit(undelivered(e.record))
			}
		}
	}
}

// sendEntry sends one entry. in is reused for audio. It reports false for a command of another link.
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
	l.s.model.lookback.sent(e.frame.PCM, e.again)
	e.frame.Free()
	return true, err
}

func (l *link) stalled() {
	if l.s.opts.Policy.Relink && orchestrator.Replaceable(l.info().Capabilities) {
		l.lost("send", errStalled)
		return
	}
	l.s.end(causeStalled)
}
