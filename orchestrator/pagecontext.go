package orchestrator

import (
	"slices"
	"time"

	"voicegw/prompts"
	"voicegw/transport"
)

// What the user's page tells the model without a turn waits in State.contexts until the model can be told: at once if
// it takes an entry at any time. If an entry ends the answer that is being generated, it waits until the model is
// silent, but not longer than until something else asks for the next answer: that ends the answer, too.

// page is what the State keeps of the user's page. It is immutable: most sessions have nothing here.
type page struct {
	contexts []string  // what it has told and the model does not know yet, oldest first
	resultAt time.Time // when the model got a result of which it has not spoken yet; zero without one
}

// resulted notes when the model got a result of which it has not spoken; zero once it has.
func (m *machine) resulted(at time.Time) {
	if !m.resultAt.Equal(at) {
		m.page = &page{m.contexts, at}
	}
}

// userContext takes what the page tells. Nothing of the user's changes with it: a page cannot speak for its user.
func (m *machine) userContext(in UserContext) {
	switch {
	case m.ending():
		m.do(Failed{Failure: FailureEnding, Ref: OfContext})
	case m.caps.AddItem == transport.AddItemNone:
		m.do(Failed{Failure: FailureNotAvailable, Ref: OfContext})
	case len(m.contexts) >= maxContexts:
		// The oldest is not dropped in its place: the page would not know.
		m.do(Failed{Failure: FailureUnsent, Retryable: true, Ref: OfContext})
	default:
		m.page = &page{append(slices.Clone(m.contexts), in.Text), m.resultAt}
	}
}

// listens reports whether an entry would end nothing that the model does. A user who is speaking is not waited for:
// the model would answer without it as soon as they stop.
func (s State) listens() bool {
	switch s.caps.AddItem {
	case transport.AddItemLive:
		return !s.down()
	case transport.AddItemIdle:
		return !s.down() && !s.deafInCall() && !s.underWay() && s.hasAnswered()
	default:
		return false
	}
}

// deafInCall reports whether a call waits for its result, and the model takes no entry until it has that.
func (s State) deafInCall() bool {
	if s.caps.AddItemBeside {
		return s.calls.Holds(s.beside)
	}
	return s.calls.Awaited() > 0
}

// hasAnswered reports whether no answer is expected but that to calls which run beside the talk.
func (s State) hasAnswered() bool {
	t := s.turn
	return t == nil || t.stage == done || t.cut != uncut || t.stage == owing && s.calls.Awaited() > 0
}

// contextAt returns until when what the page has told waits for an answer that may be about to begin; zero if it does
// not.
func (s State) contextAt() (until time.Time) {
	if len(s.contexts) == 0 {
		return until
	}
	return s.entryAt()
}

// entryAt returns until when what waits for a silent model also waits for an answer that may be about to begin: to
// speech that has just ended, or to the result of a call. It is zero if nothing does. Noise is never answered, nor are
// some results.
func (s State) entryAt() (until time.Time) {
	if s.caps.AddItem == transport.AddItemLive || !s.listens() {
		return until
	}
	if s.user.unanswered && !s.user.speaks() {
		until = s.user.since.Add(s.policy.NudgeAfter)
	}
	if at := s.resultAt.Add(s.policy.NudgeAfter); !s.resultAt.IsZero() && at.After(until) {
		until = at
	}
	if at := s.workedUntil(); at.After(until) {
		until = at
	}
	return until
}

// giveContext tells the model what waits for it, if it listens.
func (m *machine) giveContext() {
	if m.listens() && !m.at.Before(m.contextAt()) {
		m.give()
	}
}

// giveBefore tells the model what waits for it before something asks for the next answer. While a call waits for its
// result it stays: some models close the connection then.
func (m *machine) giveBefore() {
	if !m.down() && m.caps.AddItem != transport.AddItemNone && !m.deafInCall() {
		m.give()
		m.takeNews()
	}
}

// giveAnew tells the model on a new connection, which generates nothing yet, what waits for it.
func (m *machine) giveAnew() {
	m.resulted(time.Time{})
	if len(m.contexts) > 0 && m.caps.AddItem == transport.AddItemNone {
		m.keepContexts() // a model that is told the conversation will know
		m.do(Failed{Failure: FailureNotAvailable, Ref: OfContext})
		return
	}
	m.give()
}

func (m *machine) give() {
	if len(m.contexts) == 0 {
		return
	}
	for _, text := range m.contexts {
		m.changed()
		m.do(ContextGiven{text}, Command{transport.AddItem{Item: transport.PastUser{Text: m.mark.Notice(prompts.PageContext(text))}}})
	}
	m.page = &page{nil, m.resultAt}
}

// keepContexts leaves what waits to the conversation alone, because this model will not be told.
func (m *machine) keepContexts() {
	m.do(m.Ungiven()...)
	m.page = &page{nil, m.resultAt}
}

// Ungiven returns a ContextGiven for each text of the page that the model has not been told, for a session that ends
// without a step.
func (s State) Ungiven() (all []Action) {
	for _, text := range s.contexts {
		all = append(all, ContextGiven{text})
	}
	return all
}
