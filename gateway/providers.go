package gateway

import (
	"net/http"
	"strconv"
	"strings"

	"voicegw/protocol"
	"voicegw/transport"
)

type providerLine struct {
	Name      string              `json:"name"`
	Model     string              `json:"model"`
	Voices    []string            `json:"voices"`
	Voice     string              `json:"voice"`
	Simulated bool                `json:"simulated"`
	Ends      *transport.ModelEnd `json:"ends,omitempty"`
}

type offered struct {
	Default   string         `json:"default"`
	Agents    []string       `json:"agents"`
	Providers []providerLine `json:"providers"`
	TextAgent bool           `json:"text_agent"`
	Simulator bool           `json:"simulator"`
}

const mostNamed = 10

func (s *Server) unknownAgent(name string) *problem {
	names := s.opts.Sessions.Agents()
	there := `"` + strings.Join(names[:min(len(names), mostNamed)], `", "`) + `"`
	if len(names) > mostNamed {
		there += " and more"
	}
	return refusal(http.StatusNotFound, protocol.CodeUnknownAgent,
		"There is no agent "+strconv.Quote(clip(name))+"; available: "+there+".")
}

func (s *Server) providers(w http.ResponseWriter, _ *http.Request) *problem {
	list := offered{Agents: s.opts.Sessions.Agents(), TextAgent: s.opts.Chat != nil, Simulator: s.opts.Simulator != nil}
	for _, p := range s.opts.Sessions.Providers() {
		line := providerLine{Name: p.Name, Model: p.Model, Voices: p.Voices, Voice: p.Voice}
		if line.Voices == nil {
			line.Voices = []string{}
		}
		if end, announced := transport.EndOfModel(p.Model); announced {
			line.Ends = &end
		}
		line.Simulated = list.Simulator // which replaces all providers
		list.Providers = append(list.Providers, line)
	}
	list.Default = list.Providers[0].Name
	return answer(w, http.StatusOK, list)
}
