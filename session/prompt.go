package session

import (
	"errors"
	"strings"

	"voicegw/transport"
)

// Prompt is the setup of a session's model, as a new connection would get it.
type Prompt struct {
	Agent, AgentVersion    string
	Provider, Model, Voice string // an empty Model or Voice is the provider's own
	Language               string // BCP 47; empty lets the model choose
	// Instructions is the whole system text without the secret mark of the gateway's own messages.
	Instructions string
	// Tools have the model's form.
	Tools []transport.Tool
}

// ErrNoModel means that the session has no model yet, or is over.
var ErrNoModel = errors.New("session: no model yet, or the session is over")

// Prompt returns the setup of the session with that id. The error is ErrNotHere or ErrNoModel.
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
