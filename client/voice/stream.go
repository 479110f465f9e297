package voice

import (
	"slices"
	"time"
)

// stream models the timing of a player with a fixed buffer: it begins to play once it holds that much
// audio, and when it runs dry it waits until it holds that much again.
type stream struct {
	buffer time.Duration // fixed

	now     time.Time     // up to which it has played
	level   time.Duration // what it holds
	playing bool
	open    bool      // more of the answer may come
	dry     time.Time // since when it has had nothing to play of an open answer; zero otherwise
}

// begin opens an answer.
func (s *stream) begin(now time.Time) {
	s.advance(now)
	s.open = true
}

// advance plays until now and returns how much it has played.
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

// add takes in audio. gap is how long the player was silent in the middle of an answer,
// if that is over now.
func (s *stream) add(now time.Time, d time.Duration) (gap time.Duration) {
	s.level += d
	if s.level < s.buffer {
		return 0
	}
	return s.play(now)
}

// end says that the answer is complete: what is held is played however little it is.
func (s *stream) end(now time.Time) (gap time.Duration) {
	s.open = false
	if s.level > 0 {
		gap = s.play(now)
	}
	s.dry = time.Time{}
	return gap
}

// flush drops everything but so much, which belongs to other answers.
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

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }
