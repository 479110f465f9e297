package session

import (
	"time"

	"voicegw/orchestrator"
	"voicegw/transport"
)

// pauseAfter is how long a client may send no audio before it counts as a pause: models
// listen on the audio's clock, and would wait for the rest of a phrase, or for its end,
// until audio comes again. A client that was held up for less sends what it has late
// (docs/clients.md); that still belongs to the phrase.
const pauseAfter = 2 * time.Second

// audioFlows notes that audio has come.
func (s *session) audioFlows() {
	if s.manual() || s.flows.Load() {
		return
	}
	s.flows.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.isOver():
	case s.pauseWatch == nil:
		s.pauseWatch = time.AfterFunc(pauseAfter, s.watchPause)
	default:
		s.pauseWatch.Reset(pauseAfter)
	}
}

// watchPause looks whether audio still comes.
func (s *session) watchPause() {
	if s.isOver() {
		return
	}
	if left := pauseAfter - time.Since(s.clock.newest()); left > 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.isOver() {
			s.pauseWatch.Reset(left)
		}
		return
	}
	s.flows.Store(false) // a frame that comes now may be missed; the next one is not
	s.command(transport.AudioPause{}, nil)
	s.hearing.Lock()
	defer s.hearing.Unlock()
	if s.ear == nil || s.modelHears.Load() {
		return
	}
	speaking, end := s.ear.Speaking(), s.earFrom+s.ear.ClockMS()
	s.ear.Reset()
	s.earFrom = end
	if speaking {
		s.dispatch(orchestrator.UserSpeechStopped{AudioMS: end, EndAt: s.clock.when(end, time.Now()), SpeechMS: end - s.speechFrom})
	}
}
