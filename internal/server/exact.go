package server

import (
	"fmt"
	"os"

	"voicegw/config"
	"voicegw/internal/backends/speech"
	"voicegw/session"
	"voicegw/sim"
	"voicegw/transport/openai"
)

// newSpeaker makes the source of exact sentences; nil without any. sim may be nil. The error is config.Problems.
func newSpeaker(cfg *config.Config, sim *sim.Local) (session.Speech, error) {
	x := cfg.Exact
	e := speech.Endpoint{BaseURL: x.BaseURL, APIKey: x.APIKey.Reveal(), Model: x.Model, Voice: x.Voice, Format: x.Format,
		Timeout: x.Timeout}
	switch openAIs := cfg.OfWire(wireOpenAI); {
	case e.BaseURL != "":
	case sim != nil:
		e.BaseURL, e.APIKey = sim.OpenAIURL(), simKey
	default:
		for _, p := range openAIs {
			if openai.ServesREST(p.BaseURL) {
				e.BaseURL, e.APIKey = speechURL(p.BaseURL), p.APIKey.Reveal()
				break
			}
		}
	}
	var recordings []speech.Recording
	if folder := string(x.Recordings); folder != "" {
		var err error
		if recordings, err = speech.Load(os.DirFS(folder)); err != nil {
			return nil, config.Problems{{Where: "exact.recordings",
				Message: fmt.Sprintf("exact.recordings is %s, which cannot be used: %v.",
					folder, err)}}
		}
	}
	if e.BaseURL == "" && len(recordings) == 0 {
		return nil, nil
	}
	return speech.New(recordings, e), nil
}

// speechURL is the address of a provider's other interfaces; OpenAI's if it has none.
func speechURL(base string) string {
	if base == "" {
		return "https://api.openai.com/v1"
	}
	return overHTTP(base)
}
