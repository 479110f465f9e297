package session

import (
	"sync"
	"time"

	"voicegw/audio"
	"voicegw/orchestrator"
	"voicegw/transport"
)

// listener is the gateway's own speech detector. It hears all of the user's audio, with every model: it supplies
// the events that a model does not report, and it finds the user's last sound in the same way for all models.
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

// dispatcher takes steps; *session implements it.
type dispatcher interface{ dispatch(in orchestrator.Input) }

func (s *session) newDetector() *audio.Detector {
	return audio.NewDetector(audio.DetectorOptions{Rate: s.model.link().info().InputRate, SilenceMS: s.opts.SilenceMS,
		PrefixMS:  s.opts.PrefixMS,
		SustainMS: int(orchestrator.SustainedSpeech.Milliseconds())})
}

// hear takes a piece of the user's audio. fresh makes the detector.
func (e *listener) hear(pcm []byte, clock *audioClock, to dispatcher, fresh func() *audio.Detector) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.detector == nil {
		e.detector = fresh()
	}
	for _, a := range e.detector.Process(pcm) {
		e.report(a, clock, to)
	}
	if now := time.Now(); e.detector.Speaking() && now.Sub(e.heardAt) >= orchestrator.HeardEvery {
		e.heardAt = now
		to.dispatch(orchestrator.UserHeard{AudioMS: clock.ms()})
	}
}

// report passes an activity on. The caller must hold mu.
func (e *listener) report(a audio.Activity, clock *audioClock, to dispatcher) {
	if a.Sustained {
		e.heardAt = time.Now()
		to.dispatch(orchestrator.UserHeard{AudioMS: clock.ms(), Sustained: true})
		return
	}
	edge, report := e.from+a.EdgeMS, e.from+a.ReportMS
	at := clock.when(edge, time.Now())
	if a.Started {
		e.speechFrom = edge
	}
	switch {
	case a.Started && !e.modelHears:
		to.dispatch(orchestrator.UserSpeechStarted{AudioMS: report, At: at})
	case a.Started:
	case e.modelHears:
		to.dispatch(orchestrator.UserQuiet{EndAt: at})
	default:
		to.dispatch(orchestrator.UserSpeechStopped{AudioMS: report, EndMS: edge, EndAt: at, SpeechMS: edge - e.speechFrom})
	}
}

// pause ends the speech that the detector hears, because the client has paused its audio.
func (e *listener) pause(clock *audioClock, to dispatcher) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.detector == nil {
		return
	}
	speaking, end := e.detector.Speaking(), e.detector.ClockMS()
	last, _ := e.detector.LastMS()
	e.detector.Reset()
	if speaking {
		e.report(audio.Activity{EdgeMS: last, ReportMS: end}, clock, to)
	}
	e.from += end
}

// startAt sets where the client's audio begins, in ms.
func (e *listener) startAt(ms int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.from = ms
}

// relinked adapts to another connection to a model. resampled: its audio has another rate.
func (e *listener) relinked(modelHears, resampled bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.modelHears = modelHears
	if resampled && e.detector != nil {
		e.from += e.detector.ClockMS()
		e.detector = nil
	}
}

// speechStart returns where on the client's audio clock the speech began that the model reports, on a link whose
// clock began at offsetMS. From now on the model counts as one that reports speech, whatever its capabilities say,
// and the length of that speech counts from now.
func (e *listener) speechStart(offsetMS int64, ev transport.SpeechStarted) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	ms := offsetMS + ev.AudioMS
	if e.detector != nil {
		if last, _ := e.detector.LastMS(); ev.Late && e.detector.Speaking() {
			ms = min(ms, e.from+last) // a short word may be over before its report comes
		}
		e.detector.Recount()
	}
	e.modelHears, e.reportedMS = true, ms
	return ms
}

// edgeSlack is by how many ms two detectors may differ about the end of the same sound.
const edgeSlack = 100

// speechEnd interprets the model's report of the end of speech, on a link whose clock began at offsetMS. The user's
// last sound is where the gateway's detector heard it, because models report the end late and include the silence
// that they waited for. Speech that the detector did not hear ended where the model says.
func (e *listener) speechEnd(offsetMS int64, ev transport.SpeechStopped, clock *audioClock) orchestrator.UserSpeechStopped {
	in := orchestrator.UserSpeechStopped{
		Item: ev.Item, AudioMS: offsetMS + ev.AudioMS, EndMS: offsetMS + ev.EndMS, Unsure: ev.EndMS == ev.AudioMS,
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.detector != nil {
		ms, spoke := e.detector.LastMS()
		if ms += e.from; spoke && ms >= e.reportedMS {
			in.Unsure = false
			if ms <= in.AudioMS+edgeSlack { // a later sound is one that the model does not take for speech
				in.EndMS = min(ms, in.AudioMS)
			}
		}
	}
	in.EndAt = clock.when(in.EndMS, time.Now())
	return in
}
