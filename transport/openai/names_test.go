package openai

import (
	"testing"

	"voicegw/transport"
)

// TestModelNames: OpenAI's own service and the simulator have known models; deployments and compatible servers may have
// any.
func TestModelNames(t *testing.T) {
	own := transport.Provider{APIKey: "k"}
	for name, tt := range map[string]struct {
		opts    transport.Provider
		model   string
		refuses bool
		lists   bool
	}{
		"realtime":            {own, "gpt-realtime-2.1", false, true},
		"an older one":        {own, "gpt-4o-realtime-preview-2025-06-03", false, true},
		"a new one":           {own, "gpt-realtime-3", false, true},
		"text":                {own, "gpt-4o-mini", true, true},
		"reasoning":           {own, "o4-mini", true, true},
		"Live":                {own, "gpt-live-1", true, true},
		"speech":              {own, "tts-1-hd", true, true},
		"the simulator":       {transport.Provider{APIKey: "k", BaseURL: "http://127.0.0.1:1/v1", Simulated: true}, "gpt-5", true, true},
		"a compatible server": {transport.Provider{APIKey: "k", BaseURL: "https://local.example/v1"}, "gpt-4o", false, false},
		"Azure":               {transport.Provider{APIKey: "k", BaseURL: "https://x.openai.azure.com", Model: "my-voice"}, "gpt-4o", false, false},
		"xAI":                 {transport.Provider{APIKey: "k", BaseURL: "https://api.x.ai/v1"}, "grok-voice-latest", false, false},
	} {
		tr, err := New(tt.opts)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := tr.Refuses(tt.model); got != tt.refuses {
			t.Errorf("%s: refuses %s: %v", name, tt.model, got)
		}
		if models := tr.Models(); (models != nil) != tt.lists || tt.lists && models[0] != DefaultModel {
			t.Errorf("%s: lists %v", name, models)
		}
	}
}
