package session

import (
	"time"

	"voicegw/transport"
)

// pauseAfter is how long a client may send no audio before that counts as a pause. A model's sense
// of time is the audio itself: without audio it waits for the rest of a phrase, or for its end.
// A client that was held up for less sends the missing audio late (docs/clients.md); that still
// belongs to the phrase.
const pauseAfter = 2 * time.Second

// audioFlows records that audio has arrived.
func (s *session) audioFlows() {
	if s.manual() || s.mic.flows.Load() {
		return
	}
	s.mic.flows.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.isOver():
	case s.mic.pauseWatch == nil:
		s.mic.pauseWatch = time.AfterFunc(pauseAfter, s.watchPause)
	default:
		s.mic.pauseWatch.Reset(pauseAfter)
	}
}

// watchPause checks whether audio is still arriving.
func (s *session) watchPause() {
	if s.isOver() {
		return
	}
	if left := pauseAfter - time.Since(s.mic.clock.newest()); left > 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.isOver() {
			s.mic.pauseWatch.Reset(left)
		}
		return
	}
	s.mic.flows.Store(false) // a frame that arrives now may be missed; the next one is not
	s.command(transport.AudioPause{}, nil)
	s.earPauses()
}
