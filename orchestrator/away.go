package orchestrator

import (
	"slices"
	"time"
)

// ClientLost reports that the connection of the session's client is lost. The session goes on
// without a client for Policy.ResumeGrace and then ends. It is ignored if the client is away
// already.
type ClientLost struct{}

// ClientBack reports that the client has connected again. It is ignored if the client is not away.
type ClientBack struct {
	// Again are the items of which audio that was sent will be sent again, because the client has
	// not received it.
	Again []Again
	// Gone are the items that the client knows and no longer has, and that cannot be sent again
	// from where it has them. They are flushed.
	Gone []string
}

// Again is an item of which a part is sent again.
type Again struct {
	Item string
	// Has is how much of the item the client has.
	Has time.Duration
}

func (ClientLost) input() {}
func (ClientBack) input() {}

// absence is what the State keeps about a client that is or was away.
type absence struct {
	since time.Time // when the client was lost; zero while it is there
	back  time.Time // when it last came back; zero if it never left
}

// away reports whether the session has no client at the moment.
func (s State) away() bool { return !s.absence.since.IsZero() }

// AwaySince returns when the session's client was lost; zero if there is one.
func (s State) AwaySince() time.Time { return s.absence.since }

// releaseWait is how long a client that is away may hold its push-to-talk button: as long as a gap
// in the audio of other clients belongs to their phrase.
const releaseWait = 2 * time.Second

// goneAt returns when a session whose client is away ends; zero if the client is there.
func (s State) goneAt() time.Time {
	if !s.away() {
		return time.Time{}
	}
	return s.absence.since.Add(s.policy.ResumeGrace)
}

// releasedAt returns when the push-to-talk button of a client that is away counts as released;
// zero if it is not held, or if the client is there.
func (s State) releasedAt() time.Time {
	if !s.away() || s.user.voice != pressing {
		return time.Time{}
	}
	return s.absence.since.Add(releaseWait)
}

// ofClient takes an input about the client's connection.
func (m *machine) ofClient(in Input) {
	switch in := in.(type) {
	case ClientLost:
		m.clientLost()
	case ClientBack:
		m.clientBack(in)
	}
}

func (m *machine) clientLost() {
	if m.away() {
		return
	}
	m.absence.since, m.line.stopped = m.at, m.at
	if m.policy.ResumeGrace <= 0 {
		m.end(EndGone)
	}
}

func (m *machine) clientBack(in ClientBack) {
	if !m.away() {
		return
	}
	gone := m.at.Sub(m.absence.since)
	m.absence = absence{back: m.at}
	m.line.goOn(gone)
	for _, a := range in.Again {
		m.line.again(a)
	}
	lost := func(it item) bool { return slices.Contains(in.Gone, it.id) }
	if m.flushThose(FlushConnectionLost, lost) {
		m.turn.lost = true
	}
}

// watchAway ends a session whose client does not come back, and speech whose end it cannot report.
func (m *machine) watchAway() {
	if at := m.releasedAt(); !at.IsZero() && !m.at.Before(at) {
		m.released(m.user.earMS, false) // how long it was held is not known
	}
	if at := m.goneAt(); !at.IsZero() && !m.at.Before(at) {
		m.end(EndGone)
	}
}

// now returns the time on the line: it stands still while the client is away, because nobody can
// know what the user hears meanwhile.
func (l line) now(at time.Time) time.Time {
	if !l.stopped.IsZero() && at.After(l.stopped) {
		return l.stopped
	}
	return at
}

// goOn lets the time on the line go on after it has stood still for that long.
func (l *line) goOn(still time.Duration) {
	l.stopped = time.Time{}
	later := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.Add(still)
		}
	}
	later(&l.passed)
	for i := range l.items {
		later(&l.items[i].until)
		later(&l.items[i].reportedAt)
	}
}

// again records that the client has only a part of what was sent of an item.
func (l *line) again(a Again) {
	i := l.index(a.Item)
	if i < 0 || l.items[i].done || a.Has >= l.items[i].sent {
		return
	}
	it := &l.items[i]
	it.until = it.until.Add(a.Has - it.sent)
	it.sent = a.Has
	it.playedMS = min(it.playedMS, a.Has.Milliseconds())
}
