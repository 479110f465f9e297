package gemini

import (
	"time"

	"github.com/coder/websocket"
)

// limits are the maximum ages of a connection and a session. Negative durations mean never.
type limits struct {
	goAwayAfter time.Duration
	goAwayLeft  time.Duration
	grace       time.Duration // from goAway to the close
	session     time.Duration
	playback    float64 // speed of the imagined player; 0 does not wait for it
	// As in pace.Options.
	chunkMS      int
	speed        float64
	firstAudioMS int
}

// Lifetimes of connections, as kazunori279/interpretab@d0ef611 measured them, and for
// 3.8 as discuss.ai.google.dev/t/186392 did; lifetimes of sessions without compression
// are documented (https://ai.google.dev/gemini-api/docs/live-session). All read
// 2026-11-20. The announced time and the real one differ by 0.4 s.
const (
	defaultGoAwayAfter = 9 * time.Minute
	defaultGoAwayLeft  = 50 * time.Second
	goAwayExtra        = 400 * time.Millisecond
	defaultSessionLife = 15 * time.Minute
	longConnection     = 58 * time.Minute
)

// setDeadlines sets the timers for the end of the connection. 3.8 announces nothing and
// closes 1011 after 58 minutes; explicit options apply to every model.
func (s *session) setDeadlines(now time.Time) {
	l := s.limits
	switch {
	case l.goAwayAfter > 0:
		s.after(now, l.goAwayAfter, func(now time.Time) { s.goAway(now, l.goAwayLeft) })
	case l.goAwayAfter == 0 && s.cfg.habits.gen == gen38:
		s.after(now, longConnection, func(time.Time) { s.close(internal(reasonDeadline)) })
	case l.goAwayAfter == 0:
		s.after(now, defaultGoAwayAfter, func(now time.Time) { s.goAway(now, l.goAwayLeft) })
	}
	life := l.session
	if life == 0 {
		if s.cfg.habits.gen == gen38 {
			return
		}
		life = defaultSessionLife
	}
	if life < 0 || s.cfg.compressed {
		return
	}
	left := s.conv.began.Add(life).Sub(now)
	s.after(now, max(left-l.goAwayLeft, 0), func(time.Time) {
		s.send(serverFrame{GoAway: &goAway{TimeLeft: protoDuration(min(l.goAwayLeft, left))}})
	})
	s.after(now, left, func(time.Time) { s.close(policy(reasonAborted)) })
}

// goAway announces the end of the connection and closes it at that time.
func (s *session) goAway(now time.Time, left time.Duration) {
	s.send(serverFrame{GoAway: &goAway{TimeLeft: protoDuration(left)}})
	s.after(now, left+s.limits.grace, func(time.Time) { s.close(policy(reasonGoAwayIgnored)) })
}

func orCode(code int, other websocket.StatusCode) websocket.StatusCode {
	if code == 0 {
		return other
	}
	return websocket.StatusCode(code)
}

func orText(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
