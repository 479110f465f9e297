package openai

import (
	"strings"

	"voicegw/transport"
)

// Wire is this package's row in the table of wires. Its own settings are
// transcription_model and reasoning: [Options.TranscriptionModel], [Options.Reasoning].
func Wire() transport.Wire {
	return transport.Wire{
		Name:         defaultName,
		KeyVariables: []string{"OPENAI_API_KEY"},
		Settings:     []string{"transcription_model", "reasoning"},
		Simulated:    true,
		New: func(p transport.Provider) (transport.Transport, error) {
			return New(Options{
				Name: p.Name, APIKey: p.APIKey, BaseURL: p.BaseURL, Model: p.Model, Voice: p.Voice,
				TranscriptionModel: p.Settings["transcription_model"], Reasoning: p.Settings["reasoning"],
				NoInterrupt: p.NoInterrupt, Simulated: p.Simulated, HTTPClient: p.HTTPClient, Logger: p.Logger,
			})
		},
	}
}

// ServesREST reports whether the server of a base URL also has the provider's request/response
// APIs (chat models, images). All do except Voice Live, which is a separate service.
func ServesREST(baseURL string) bool { return !strings.Contains(baseURL, voiceLivePath) }

// voiceLivePath is part of the path of Azure's Voice Live.
const voiceLivePath = "/voice-live"
