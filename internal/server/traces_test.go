package server

import (
	"testing"

	"voicegw/internal/traces"
)

// TestModelAt is the table of the reported addresses of models.
func TestModelAt(t *testing.T) {
	for _, c := range []struct {
		wire, address string
		want          traces.Model
	}{
		{"openai", "", traces.Model{System: "openai", Host: "api.openai.com", Port: 443}},
		{"gemini", "", traces.Model{System: "gcp.gemini", Host: "generativelanguage.googleapis.com", Port: 443}},
		{"openai", "https://desk.openai.azure.com/openai/v1", traces.Model{System: "azure.ai.openai", Host: "desk.openai.azure.com", Port: 443}},
		{"gemini", "https://europe-west4-aiplatform.googleapis.com", traces.Model{System: "gcp.vertex_ai", Host: "europe-west4-aiplatform.googleapis.com", Port: 443}},
		{"openai", "https://generativelanguage.googleapis.com/v1beta/openai", traces.Model{System: "gcp.gemini", Host: "generativelanguage.googleapis.com", Port: 443}},
		{"openai", "ws://127.0.0.1:9/v1", traces.Model{System: "openai", Host: "127.0.0.1", Port: 9}},
		{"openai", "http://models/v1", traces.Model{System: "openai", Host: "models", Port: 80}},
	} {
		if got := modelAt(c.wire, c.address); got != c.want {
			t.Errorf("%s at %q: %+v", c.wire, c.address, got)
		}
	}
}
