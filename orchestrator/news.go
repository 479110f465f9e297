package orchestrator

import (
	"time"

	"voicegw/prompts"
	"voicegw/transport"
)

// What a tool says of how far it is reaches the model as an entry without a turn, as what a page tells does, and waits
// for the same moments. Only the newest is told, of a call that runs and for whose result the model waits: what is over
// is told by its result. Where the model takes no entry while that call waits, it is told nothing.

// newsAt returns when the model is told how far calls are; zero if there is nothing to tell, or not until something
// else happens.
func (s State) newsAt() (at time.Time) {
	if s.phase != PhaseActive || !s.listens() {
		return at
	}
	if at = s.calls.NewsAt(); at.IsZero() {
		return at
	}
	if until := s.entryAt(); until.After(at) {
		return until
	}
	return at
}

// giveNews tells the model how far calls are, if it listens.
func (m *machine) giveNews() {
	if at := m.newsAt(); !at.IsZero() && !m.at.Before(at) {
		m.takeNews()
	}
}

// takeNews tells the model how far calls are, of which it has not been told for a while. A handle from which the
// conversation could be resumed need not know it.
func (m *machine) takeNews() {
	if m.phase != PhaseActive {
		return
	}
	for _, n := range m.calls.TakeNews(m.at) {
		m.do(Command{transport.AddItem{Item: transport.PastUser{Text: m.mark.Notice(prompts.Progress(n.Tool, n.Text, n.Fraction))}}})
	}
}
