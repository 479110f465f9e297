package gateway

import (
	"net/http"
	"strconv"
	"strings"

	"voicegw/protocol"
	"voicegw/transport"
)

type providerLine struct {
	Name  string `json:"name"`
	Model string `json:"model"`
	// Voices are the provider's documented voices, default first; Voice is the configured one.
	Voices    []string `json:"voices"`
	Voice     string   `json:"voice"`
	Simulated bool     `json:"simulated"`
	// Ends is the announced shutdown of the model, if any.
	Ends *transport.ModelEnd `json:"ends,omitempty"`
}

// offered is everything that a client may request.
type offered struct {
	Default   string         `json:"default"`
	Agents    []string       `json:"agents"`
	Providers []providerLine `json:"providers"`
	TextAgent bool           `json:"text_agent"`
	Simulator bool           `json:"simulator"`
}

// mostNamed limits the agents in an error.
const mostNamed = 10

// unknownAgent answers a request for an unknown agent.
func (s *Server) unknownAgent(w http.ResponseWriter, name string) {
	names := s.opts.Sessions.Agents()
	there := `"` + strings.Join(names[:min(len(names), mostNamed)], `", "`) + `"`
	if len(names) > mostNamed {
		there += " and more"
	}
	problem(w, http.StatusNotFound, protocol.CodeUnknownAgent, "There is no agent "+strconv.Quote(clip(name))+"; available: "+there+".")
}

// providers lists what a client may request.
func (s *Server) providers(w http.ResponseWriter, _ *http.Request) {
	list := offered{Agents: s.opts.Sessions.Agents(), TextAgent: s.opts.Chat != nil, Simulator: s.opts.Simulator != nil}
	for _, p := range s.opts.Sessions.Providers() {
		line := providerLine{Name: p.Name, Model: p.Model, Voices: p.Voices, Voice: p.Voice}
		if line.Voices == nil {
			line.Voices = []string{}
		}
		if end, announced := transport.EndOfModel(p.Model); announced {
			line.Ends = &end
		}
		line.Simulated = s.opts.Simulator != nil && s.opts.Simulator.Simulates(p.Name)
		list.Providers = append(list.Providers, line)
	}
	list.Default = list.Providers[0].Name
	answer(w, http.StatusOK, list)
}
