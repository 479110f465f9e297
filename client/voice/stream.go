package voice

import (
	"slices"
	"time"
)

// stream models a player with a fixed buffer. It starts when the buffer is full; when it runs dry, it waits for a full
// buffer again.
type stream struct {
	buffer time.Duration // fixed

	now     time.Time     // played up to this time
	level   time.Duration // buffered audio
	playing bool
	open    bool      // more of the answer may arrive
	dry     time.Time // when it ran dry within an open answer, or zero
}

// advance plays until now and returns the amount played.
func (s *stream) advance(now time.Time) time.Duration {
	passed := max(now.Sub(s.now), 0)
	if !s.playing {
		s.now = later(s.now, now)
		return 0
	}
	if passed < s.level {
		s.now = later(s.now, now)
		s.level -= passed
		return passed
	}
	played := s.level
	if s.open {
		s.dry = s.now.Add(played)
	}
	s.now, s.level, s.playing = later(s.now, now), 0, false
	return played
}

// add buffers audio. gap is the length of an underrun that ended with it.
func (s *stream) add(now time.Time, d time.Duration) (gap time.Duration) {
	s.level += d
	if s.level < s.buffer {
		return 0
	}
	return s.play(now)
}

// end marks the answer as complete: the rest is played without waiting for a full buffer.
func (s *stream) end(now time.Time) (gap time.Duration) {
	s.open = false
	if s.level > 0 {
		gap = s.play(now)
	}
	s.dry = time.Time{}
	return gap
}

// flush drops everything except keep, which belongs to other answers.
func (s *stream) flush(held time.Duration, open bool) {
	s.level, s.playing, s.open, s.dry = held, held > 0, open, time.Time{}
}

func (s *stream) play(now time.Time) (gap time.Duration) {
	if s.playing {
		return 0
	}
	s.playing = true
	if !s.dry.IsZero() {
		gap = now.Sub(s.dry)
		s.dry = time.Time{}
	}
	return gap
}

func earlier(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{a, b}, time.Time.Compare) }

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }
