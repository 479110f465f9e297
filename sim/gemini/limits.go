package gemini

import (
	"time"

	"voicegw/sim/wire"
)

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

func goAwayLeft(o wire.Options) time.Duration {
	switch {
	case o.GoAwayLeft != 0:
		return max(o.GoAwayLeft, 0)
	case o.ConnectionLife <= 0:
		return defaultGoAwayLeft
	case o.GoAwayAfter > 0:
		return max(o.ConnectionLife-o.GoAwayAfter, 0)
	}
	return min(defaultGoAwayLeft, o.ConnectionLife/4)
}

// ending returns how a connection of a model of that generation ends of age: silently after
// silent, or announced after announced, each -1 if it does not.
func ending(o *wire.Options, gen generation) (silent, announced time.Duration) {
	life := o.ConnectionLife
	if life == 0 {
		life = shortConnection
		if gen == gen38 {
			life = longConnection
		}
	}
	switch {
	case o.GoAwayAfter > 0:
		return -1, o.GoAwayAfter
	case life < 0 || o.GoAwayAfter < 0 && o.ConnectionLife == 0:
		return -1, -1
	case gen == gen38 || o.GoAwayAfter < 0:
		return life, -1
	}
	return -1, max(life-o.GoAwayLeft, 0)
}

// setDeadlines sets the timers for the end of the connection. 3.8 announces nothing and
// closes 1011 after 58 minutes; explicit options apply to every model.
func (s *session) setDeadlines(now time.Time) {
	o := s.opts
	silent, announced := ending(o, s.cfg.habits.gen)
	if announced >= 0 {
		left := o.GoAwayLeft
		if o.ConnectionLife > 0 {
			left = min(left, o.ConnectionLife)
		}
		s.after(now, announced, func(now time.Time) { s.goAway(now, left) })
	}
	if silent >= 0 {
		s.after(now, silent, func(time.Time) { s.close(internal(reasonDeadline)) })
	}
	life := o.SessionLife
	if life == 0 {
		if s.cfg.habits.gen == gen38 {
			return
		}
		life = defaultSessionLife
	}
	if life < 0 || s.cfg.Compression != nil {
		return
	}
	left := s.conv.began.Add(life).Sub(now)
	s.after(now, max(left-o.GoAwayLeft, 0), func(time.Time) {
		s.send(serverFrame{GoAway: &goAway{TimeLeft: protoDuration(min(o.GoAwayLeft, left))}})
	})
	s.after(now, left, func(time.Time) { s.close(policy(reasonAborted)) })
}

func (s *session) goAway(now time.Time, left time.Duration) {
	s.send(serverFrame{GoAway: &goAway{TimeLeft: protoDuration(left)}})
	s.after(now, left+goAwayExtra, func(time.Time) { s.close(policy(reasonGoAwayIgnored)) })
}
