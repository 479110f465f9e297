package gemini

import "time"

// limits are the maximum ages of a connection and a session. Negative durations mean never.
type limits struct {
	connection  time.Duration // 0 means the model's own
	goAwayAfter time.Duration // 0 means the model's own
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
	shortConnection    = 9*time.Minute + defaultGoAwayLeft
	defaultGoAwayLeft  = 50 * time.Second
	goAwayExtra        = 400 * time.Millisecond
	defaultSessionLife = 15 * time.Minute
	longConnection     = 58 * time.Minute
)

// fill sets what depends on other limits: how long before its end a connection announces it.
func (l *limits) fill() {
	switch {
	case l.goAwayLeft < 0:
		l.goAwayLeft = 0
	case l.goAwayLeft > 0:
	case l.connection > 0:
		l.goAwayLeft = min(defaultGoAwayLeft, l.connection/4)
		if l.goAwayAfter > 0 {
			l.goAwayLeft = max(l.connection-l.goAwayAfter, 0)
		}
	default:
		l.goAwayLeft = defaultGoAwayLeft
	}
}

// ending returns how a connection of a model of that generation ends of age: silently after
// silent, or announced after announced, each -1 if it does not.
func (l *limits) ending(gen generation) (silent, announced time.Duration) {
	life := l.connection
	if life == 0 {
		life = shortConnection
		if gen == gen38 {
			life = longConnection
		}
	}
	switch {
	case l.goAwayAfter > 0:
		return -1, l.goAwayAfter
	case life < 0 || l.goAwayAfter < 0 && l.connection == 0:
		return -1, -1
	case gen == gen38 || l.goAwayAfter < 0:
		return life, -1
	}
	return -1, max(life-l.goAwayLeft, 0)
}

// setDeadlines sets the timers for the end of the connection. 3.8 announces nothing and
// closes 1011 after 58 minutes; explicit options apply to every model.
func (s *session) setDeadlines(now time.Time) {
	l := s.limits
	silent, announced := l.ending(s.cfg.habits.gen)
	if announced >= 0 {
		left := l.goAwayLeft
		if l.connection > 0 {
			left = min(left, l.connection)
		}
		s.after(now, announced, func(now time.Time) { s.goAway(now, left) })
	}
	if silent >= 0 {
		s.after(now, silent, func(time.Time) { s.close(internal(reasonDeadline)) })
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
