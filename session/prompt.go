package session

import (
	"errors"
	"strings"

	"voicegw/transport"
)

// Prompt is what the model of a session is set up with, and what a new connection would get.
type Prompt struct {
	Agent, AgentVersion    string
	Provider, Model, Voice string // an empty Model or Voice is the provider's own
	Language               string // BCP 47; empty lets the model choose
	// Instructions is the whole system text. The mark of the gateway's own messages in it is left out: it
	// is a secret of the session.
	Instructions string
	// Tools are declared as the model gets them.
	Tools []transport.Tool
}

// ErrNoModel says that the session has no model yet, or is over.
var ErrNoModel = errors.New("session: it has no model")

// Prompt returns what is in force in the session of that id. The error is ErrNotHere or ErrNoModel.
func (m *Manager) Prompt(id string) (Prompt, error) {
	s := m.roster.get(id)
	if s == nil {
		return Prompt{}, ErrNotHere
	}
	r := s.model.redial.Load()
	if r == nil {
		return Prompt{}, ErrNoModel
	}
	setup := r.setup(r.provider)
	text := setup.Instructions
	if code := r.mark.Code(); code != "" {
		text = strings.ReplaceAll(text, code, "…")
	}
	return Prompt{
		Agent: r.agent.Name, AgentVersion: r.agent.Version, Provider: r.provider, Model: setup.Model, Voice: setup.Voice, Language: setup.Language,
		Instructions: text, Tools: setup.Tools,
	}, nil
}
