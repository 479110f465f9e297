package gemini

import "voicegw/transport"

// Wire is this package's row in the table of wires. Its only own setting is thinking:
// [Options.Thinking].
func Wire() transport.Wire {
	return transport.Wire{
		Name: defaultName,
		// Google's own clients prefer GOOGLE_API_KEY if both are set.
		KeyVariables: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
		Settings:     []string{"thinking"},
		Simulated:    true,
		New: func(p transport.Provider) (transport.Transport, error) {
			return New(Options{
				Name: p.Name, APIKey: p.APIKey, BaseURL: p.BaseURL, Model: p.Model, Voice: p.Voice,
				Thinking: p.Settings["thinking"], NoInterrupt: p.NoInterrupt, Simulated: p.Simulated, HTTPClient: p.HTTPClient, Logger: p.Logger,
			})
		},
	}
}
