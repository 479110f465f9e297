package session

import (
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

// Prompt returns what is in force in the session of that id. ok is false if it does not run on this node,
// or has no model yet.
func (m *Manager) Prompt(id string) (p Prompt, ok bool) {
	m.mu.Lock()
	s := m.sessions[id]
	m.mu.Unlock()
	if s == nil {
		return Prompt{}, false
	}
	r := s.redial.Load()
	if r == nil {
		return Prompt{}, false
	}
	setup := r.setup(r.provider)
	text := setup.Instructions
	if code := r.mark.Code(); code != "" {
		text = strings.ReplaceAll(text, code, "…")
	}
	return Prompt{
		Agent: r.agent.Name, AgentVersion: r.agent.Version, Provider: r.provider, Model: setup.Model, Voice: setup.Voice, Language: setup.Language,
		Instructions: text, Tools: setup.Tools,
	}, true
}
