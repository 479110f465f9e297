package gemini

import (
	"testing"

	"voicegw/transport"
)

// TestModelNames: the provider's own service and the simulator have known models; a compatible server may have any. A
// release, a new live model and a full name are accepted.
func TestModelNames(t *testing.T) {
	own := transport.Provider{APIKey: "k"}
	for name, tt := range map[string]struct {
		opts    transport.Provider
		model   string
		refuses bool
		lists   bool
	}{
		"live":               {own, "gemini-3.8-live", false, true},
		"a new live model":   {own, "gemini-4-live-preview", false, true},
		"an older one":       {own, "gemini-2.0-flash-exp", false, true},
		"a release":          {own, "gemini-2.5-flash-native-audio-preview-09-2025", false, true},
		"text":               {own, "models/gemini-2.5-flash", true, true},
		"text, newer":        {own, "gemini-3.5-flash-lite", true, true},
		"text, preview":      {own, "gemini-3.1-pro-preview", true, true},
		"images":             {own, "gemini-3.1-flash-image-preview", true, true},
		"speech":             {own, "gemini-2.5-flash-preview-tts", true, true},
		"embeddings":         {own, "gemini-embedding-001", true, true},
		"the simulator":      {transport.Provider{APIKey: "k", BaseURL: "http://127.0.0.1:1", Simulated: true}, "gemini-2.5-pro", true, true},
		"Vertex":             {transport.Provider{APIKey: "k", BaseURL: "https://us-central1-aiplatform.googleapis.com", Model: "projects/p/locations/l/publishers/google/models/gemini-live-2.5-flash"}, "projects/p/locations/l/publishers/google/models/gemini-2.5-pro", true, true},
		"a server elsewhere": {transport.Provider{APIKey: "k", BaseURL: "https://live.example"}, "gemini-2.5-flash", false, false},
	} {
		tr, err := New(tt.opts)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := tr.Refuses(tt.model); got != tt.refuses {
			t.Errorf("%s: refuses %s: %v", name, tt.model, got)
		}
		if models := tr.Models(); (models != nil) != tt.lists || tt.lists && models[0] != defaultModel {
			t.Errorf("%s: lists %v", name, models)
		}
	}
}
