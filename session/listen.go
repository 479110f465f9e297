package session

import (
	"time"

	"voicegw/audio"
	"voicegw/orchestrator"
	"voicegw/transport"
)

// listen lets the gateway's own speech detector hear a piece of the user's audio. It hears all of it,
// with every model: it supplies what a model does not report, and it measures where the user's last sound
// was in the same way for all models.
func (s *session) listen(pcm []byte) {
	s.hearing.Lock()
	defer s.hearing.Unlock()
	if s.ear == nil {
		s.ear = audio.NewDetector(audio.DetectorOptions{Rate: s.linked.Load().info().InputRate, SilenceMS: s.opts.SilenceMS, PrefixMS: s.opts.PrefixMS,
			SustainMS: int(orchestrator.SustainedSpeech.Milliseconds())})
	}
	for _, a := range s.ear.Process(pcm) {
		s.heard(a)
	}
	if now := time.Now(); s.ear.Speaking() && now.Sub(s.heardAt) >= orchestrator.HeardEvery {
		s.heardAt = now
		s.dispatch(orchestrator.UserHeard{AudioMS: s.clock.ms()})
	}
}

// heard passes on what the detector has found. The caller must hold hearing.
func (s *session) heard(a audio.Activity) {
	if a.Sustained {
		s.heardAt = time.Now()
		s.dispatch(orchestrator.UserHeard{AudioMS: s.clock.ms(), Sustained: true})
		return
	}
	edge, report := s.earFrom+a.EdgeMS, s.earFrom+a.ReportMS
	at := s.clock.when(edge, time.Now())
	if a.Started {
		s.speechFrom = edge
	}
	switch {
	case a.Started && !s.modelHears:
		s.dispatch(orchestrator.UserSpeechStarted{AudioMS: report, At: at})
	case a.Started:
	case s.modelHears:
		s.dispatch(orchestrator.UserQuiet{EndAt: at})
	default:
		s.dispatch(orchestrator.UserSpeechStopped{AudioMS: report, EndMS: edge, EndAt: at, SpeechMS: edge - s.speechFrom})
	}
}

// earPauses ends what the detector hears, because the client has paused its audio.
func (s *session) earPauses() {
	s.hearing.Lock()
	defer s.hearing.Unlock()
	if s.ear == nil {
		return
	}
	speaking, end := s.ear.Speaking(), s.ear.ClockMS()
	last, _ := s.ear.LastMS()
	s.ear.Reset()
	if speaking {
		s.heard(audio.Activity{EdgeMS: last, ReportMS: end})
	}
	s.earFrom += end
}

// speechStart returns where on the client's audio clock the speech began that the model reports on a link
// whose clock began at offsetMS. It records that the model reports where the user speaks, whatever its
// capabilities say. How long that speech lasts counts from now.
func (s *session) speechStart(offsetMS int64, ev transport.SpeechStarted) int64 {
	s.hearing.Lock()
	defer s.hearing.Unlock()
	ms := offsetMS + ev.AudioMS
	if s.ear != nil {
		if last, _ := s.ear.LastMS(); ev.Late && s.ear.Speaking() {
			ms = min(ms, s.earFrom+last) // a short word may be over before its report comes
		}
		s.ear.Recount()
	}
	s.modelHears, s.reportedMS = true, ms
	return ms
}

// edgeSlack is by how many ms two detectors may differ about the end of the same sound.
const edgeSlack = 100

// speechEnd returns what the model's report of the end of speech means, on a link whose clock began at
// offsetMS. The user's last sound is where the gateway's detector heard it, because models report the end
// late and include the silence for which they have waited. What the detector has not heard ended where
// the model says, if it knows.
func (s *session) speechEnd(offsetMS int64, ev transport.SpeechStopped) orchestrator.UserSpeechStopped {
	in := orchestrator.UserSpeechStopped{
		Item: ev.Item, AudioMS: offsetMS + ev.AudioMS, EndMS: offsetMS + ev.EndMS, Unsure: ev.EndMS == ev.AudioMS,
	}
	s.hearing.Lock()
	defer s.hearing.Unlock()
	if s.ear != nil {
		ms, spoke := s.ear.LastMS()
		if ms += s.earFrom; spoke && ms >= s.reportedMS {
			in.Unsure = false
			if ms <= in.AudioMS+edgeSlack { // otherwise it is sound that the model does not take for speech
				in.EndMS = min(ms, in.AudioMS)
			}
		}
	}
	in.EndAt = s.clock.when(in.EndMS, time.Now())
	return in
}
