package session

import (
	"sync"
	"time"

	"voicegw/audio"
	"voicegw/orchestrator"
	"voicegw/transport"
)

// listener is the gateway's own speech detector.
type listener struct {
	mu         sync.Mutex      // guards the following fields; taken before the session's mu
	detector   *audio.Detector // nil before the first audio
	from       int64           // where the detector's clock began, ms
	speechFrom int64           // where the detector heard the speech begin, ms
	reportedMS int64           // where the model last reported the beginning of speech, ms
	heardAt    time.Time       // when the orchestrator last learned that the user still speaks
	// modelHears: the model reports where the user speaks, by its capabilities or because it has done so.
	modelHears bool
}

// listen lets the gateway's own speech detector hear a piece of the user's audio. It hears all of it,
// with every model: it supplies what a model does not report, and it measures where the user's last sound
// was in the same way for all models.
func (s *session) listen(pcm []byte) {
	s.ear.mu.Lock()
	defer s.ear.mu.Unlock()
	if s.ear.detector == nil {
		s.ear.detector = audio.NewDetector(audio.DetectorOptions{Rate: s.model.link().info().InputRate, SilenceMS: s.opts.SilenceMS, PrefixMS: s.opts.PrefixMS,
			SustainMS: int(orchestrator.SustainedSpeech.Milliseconds())})
	}
	for _, a := range s.ear.detector.Process(pcm) {
		s.heard(a)
	}
	if now := time.Now(); s.ear.detector.Speaking() && now.Sub(s.ear.heardAt) >= orchestrator.HeardEvery {
		s.ear.heardAt = now
		s.dispatch(orchestrator.UserHeard{AudioMS: s.mic.clock.ms()})
	}
}

// heard passes on what the detector has found. The caller must hold hearing.
func (s *session) heard(a audio.Activity) {
	if a.Sustained {
		s.ear.heardAt = time.Now()
		s.dispatch(orchestrator.UserHeard{AudioMS: s.mic.clock.ms(), Sustained: true})
		return
	}
	edge, report := s.ear.from+a.EdgeMS, s.ear.from+a.ReportMS
	at := s.mic.clock.when(edge, time.Now())
	if a.Started {
		s.ear.speechFrom = edge
	}
	switch {
	case a.Started && !s.ear.modelHears:
		s.dispatch(orchestrator.UserSpeechStarted{AudioMS: report, At: at})
	case a.Started:
	case s.ear.modelHears:
		s.dispatch(orchestrator.UserQuiet{EndAt: at})
	default:
		s.dispatch(orchestrator.UserSpeechStopped{AudioMS: report, EndMS: edge, EndAt: at, SpeechMS: edge - s.ear.speechFrom})
	}
}

// earPauses ends what the detector hears, because the client has paused its audio.
func (s *session) earPauses() {
	s.ear.mu.Lock()
	defer s.ear.mu.Unlock()
	if s.ear.detector == nil {
		return
	}
	speaking, end := s.ear.detector.Speaking(), s.ear.detector.ClockMS()
	last, _ := s.ear.detector.LastMS()
	s.ear.detector.Reset()
	if speaking {
		s.heard(audio.Activity{EdgeMS: last, ReportMS: end})
	}
	s.ear.from += end
}

// speechStart returns where on the client's audio clock the speech began that the model reports on a link
// whose clock began at offsetMS. It records that the model reports where the user speaks, whatever its
// capabilities say. How long that speech lasts counts from now.
func (s *session) speechStart(offsetMS int64, ev transport.SpeechStarted) int64 {
	s.ear.mu.Lock()
	defer s.ear.mu.Unlock()
	ms := offsetMS + ev.AudioMS
	if s.ear.detector != nil {
		if last, _ := s.ear.detector.LastMS(); ev.Late && s.ear.detector.Speaking() {
			ms = min(ms, s.ear.from+last) // a short word may be over before its report comes
		}
		s.ear.detector.Recount()
	}
	s.ear.modelHears, s.ear.reportedMS = true, ms
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
	s.ear.mu.Lock()
	defer s.ear.mu.Unlock()
	if s.ear.detector != nil {
		ms, spoke := s.ear.detector.LastMS()
		if ms += s.ear.from; spoke && ms >= s.ear.reportedMS {
			in.Unsure = false
			if ms <= in.AudioMS+edgeSlack { // otherwise it is sound that the model does not take for speech
				in.EndMS = min(ms, in.AudioMS)
			}
		}
	}
	in.EndAt = s.mic.clock.when(in.EndMS, time.Now())
	return in
}
