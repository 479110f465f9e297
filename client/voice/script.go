package voice

import (
	"time"
)

type script struct {
	turns []Turn // fixed
	next  int    // index of the turn after the current one
	pass  int    // through the turns, from 1
	count int    // turns so far
}

func (s *script) peek() *Turn {
	if s.next == len(s.turns) {
		return nil
	}
	return &s.turns[s.next]
}

func (s *script) take(words func(index, count, pass int) Words) *Exchange {
	s.count++
	x := &Exchange{Turn: s.peek(), Number: s.count, Index: s.next}
	s.next++
	if x.Turn.Act != Stop {
		x.Words = words(x.Index, s.count, s.pass)
	}
	return x
}

func (s *script) pause() time.Duration {
	switch t := s.peek(); {
	case t == nil:
		return DefaultPause // the last words may still be on their way
	case t.Act == Wait:
		return 0
	default:
		return t.Pause
	}
}

// interruptionAt is when the next turn interrupts the answer to x; zero for never.
func (s *script) interruptionAt(x *Exchange) time.Time {
	t := s.peek()
	if t == nil || !t.Interrupts || x.First.IsZero() || x.Settled {
		return time.Time{}
	}
	return x.First.Add(t.InterruptAfter)
}

// disconnectAt is when the next turn disconnects during x; zero for never.
func (s *script) disconnectAt(x *Exchange) time.Time {
	switch t := s.peek(); {
	case t == nil || !t.Act.Disconnects():
	case t.From == FromAnswer && !x.First.IsZero():
		return x.First.Add(t.After)
	case t.From == FromSpeech && !x.Onset.IsZero():
		return x.Onset.Add(t.After)
	}
	return time.Time{}
}

type outages struct {
	list []Outage // First of each is its next one
}

// at returns when an outage is due; zero before the session begins.
func (s *outages) at(i int, began time.Time) time.Time {
	if began.IsZero() {
		return time.Time{}
	}
	return began.Add(s.list[i].First)
}

func (s *outages) take(now, began time.Time) (o Outage, ok bool) {
	for i, o := range s.list {
		if s.at(i, began).After(now) {
			continue
		}
		for !s.at(i, began).After(now) {
			s.list[i].First += o.Every
		}
		return o, true
	}
	return Outage{}, false
}
