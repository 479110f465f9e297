package orchestrator

import (
	"slices"
	"time"
)

// ClientLost reports the loss of the client's connection. The session continues for Policy.ResumeGrace.
type ClientLost struct{}

// ClientBack reports that the client has resumed.
type ClientBack struct {
	Again []Again  // the items whose sent audio is sent again because the client did not receive it
	Gone  []string // the items that the client knows but lacks, and that cannot be sent again. They are flushed.
}

// Again is an item that is sent again in part.
type Again struct {
	Item string
	Has  time.Duration // the part of the item that the client has
}

type absence struct {
	since time.Time // when the client was lost; zero while it is connected
	back  time.Time // when it last resumed; zero if it never left
}

func (s State) away() bool { return !s.absence.since.IsZero() }

// AwaySince returns when the client was lost; zero if it is connected.
func (s State) AwaySince() time.Time { return s.absence.since }

// releaseWait is how long a lost client may hold its push-to-talk button: as long as a gap in other speech may be.
const releaseWait = 2 * time.Second

func (s State) goneAt() time.Time {
	if !s.away() {
		return time.Time{}
	}
	return s.absence.since.Add(s.policy.ResumeGrace)
}

// releasedAt returns when the push-to-talk button of a lost client counts as released.
func (s State) releasedAt() time.Time {
	if !s.away() || s.user.voice != pressing {
		return time.Time{}
	}
	return s.absence.since.Add(releaseWait)
}

func (ClientLost) take(m *machine) {
	if m.away() {
		return
	}
	m.absence.since, m.line.stopped = m.at, m.at
	if m.policy.ResumeGrace <= 0 {
		m.end(EndGone)
	}
}

func (in ClientBack) take(m *machine) {
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
