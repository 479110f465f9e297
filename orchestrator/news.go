package orchestrator

import (
	"time"

	"voicegw/prompts"
	"voicegw/transport"
)

// A tool's progress reaches the model as text without a turn, like a page's context, and waits for the same moments. Only
// the newest progress of a running call is sent. A model that accepts no text during a call gets none.

// newsAt returns when the model gets the progress of calls; zero if there is no news, or if another event must
// come first.
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

// giveNews sends the progress of calls to a listening model.
func (m *machine) giveNews() {
	if at := m.newsAt(); !at.IsZero() && !m.at.Before(at) {
		m.takeNews()
	}
}

// takeNews sends the progress of calls that the model has not heard about for a while. A resume handle need not include
// it.
func (m *machine) takeNews() {
	if m.phase != PhaseActive {
		return
	}
	for _, n := range m.calls.TakeNews(m.at) {
		m.do(Command{transport.AddItem{Item: transport.PastUser{Text: m.mark.Notice(prompts.Progress(n.Tool, n.Text, n.Fraction))}}})
	}
}
