package orchestrator

import (
	"slices"
	"time"

	"voicegw/prompts"
	"voicegw/transport"
)

// Text from the user's page waits in State.contexts until the model can take it: at once if
// it takes an entry at any time. If an entry ends the answer that is being generated, it waits until the model is
// silent, but not longer than until something else asks for the next answer: that ends the answer, too.

// page is the state of the user's page. It is immutable; most sessions have none.
type page struct {
	contexts []string  // texts that the model lacks, oldest first
	resultAt time.Time // when the model got a result that it has not answered yet; zero without one
}

// resulted records when the model got a result; zero once it has answered.
func (m *machine) resulted(at time.Time) {
	if !m.resultAt.Equal(at) {
		m.page = &page{m.contexts, at}
	}
}

// userContext handles text from the page. It changes nothing of the user's: a page cannot speak for its user.
func (m *machine) userContext(in UserContext) {
	switch {
	case m.ending():
		m.do(Failed{Failure: FailureEnding, Ref: OfContext})
	case m.caps.AddItem == transport.AddItemNone:
		m.do(Failed{Failure: FailureNotAvailable, Ref: OfContext})
	case len(m.contexts) >= maxContexts:
		// The oldest is not dropped instead: the page would not know.
		m.do(Failed{Failure: FailureUnsent, Retryable: true, Ref: OfContext})
	default:
		m.page = &page{append(slices.Clone(m.contexts), in.Text), m.resultAt}
	}
}

// listens reports whether text would interrupt nothing. It does not wait for a user who is speaking: the model would
// answer without the text.
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

// deafInCall reports whether the model accepts no text until it has the result of a call.
func (s State) deafInCall() bool {
	if s.caps.AddItemBeside {
		return s.calls.Holds(s.beside)
	}
	return s.calls.Awaited() > 0
}

// hasAnswered reports whether the only expected answers are those to background calls.
func (s State) hasAnswered() bool {
	t := s.turn
	return t == nil || t.stage == done || t.cut != uncut || t.stage == owing && s.calls.Awaited() > 0
}

// contextAt returns until when the page's texts wait for an answer that may be about to begin; zero if they do not.
func (s State) contextAt() (until time.Time) {
	if len(s.contexts) == 0 {
		return until
	}
	return s.entryAt()
}

// entryAt returns until when texts for a silent model also wait for an answer that may be about to begin: to speech
// that has just ended or to the result of a call. It is zero if nothing is expected. Noise and some results are never
// answered.
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

// giveContext sends the waiting texts to a listening model.
func (m *machine) giveContext() {
	if m.listens() && !m.at.Before(m.contextAt()) {
		m.give()
	}
}

// giveBefore sends the waiting texts before a request for the next answer. They stay while a call is open, because some
// models then close the connection.
func (m *machine) giveBefore() {
	if !m.down() && m.caps.AddItem != transport.AddItemNone && !m.deafInCall() {
		m.give()
		m.takeNews()
	}
}

// giveAnew sends the waiting texts on a new connection, which generates nothing yet.
func (m *machine) giveAnew() {
	m.resulted(time.Time{})
	if len(m.contexts) > 0 && m.caps.AddItem == transport.AddItemNone {
		m.keepContexts() // a model with the replayed history knows
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

// keepContexts leaves the waiting texts to the conversation, because this model will not get them.
func (m *machine) keepContexts() {
	m.do(m.Ungiven()...)
	m.page = &page{nil, m.resultAt}
}

// Ungiven returns a ContextGiven for each waiting text, for a session that ends without a step.
func (s State) Ungiven() (all []Action) {
	for _, text := range s.contexts {
		all = append(all, ContextGiven{text})
	}
	return all
}
