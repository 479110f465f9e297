package textmodel

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSees: which models take images, by name.
func TestSees(t *testing.T) {
	for model, want := range map[string]bool{
		"gpt-5.6-terra": true, "gpt-4o-mini": true, "gpt-4.1-2025-04-14": true, "o3": true, "o3-2025-04-16": true, "o4-mini": true, "gpt-6.1-sol": true,
		"gemini-3.8-flash": true, "models/gemini-2.5-pro": true, "google/gemini-3.5-flash-lite": true, "claude-sonnet-4-6": true, "anthropic/claude-3-opus": true,
		"gpt-3.5-turbo": false, "gpt-4": false, "o3-mini": false, "o1-mini": false, "o1-preview": false, "gpt-4o-audio-preview": false, "gpt-4o-mini-search-preview": false,
		"gemini-embedding-001": false, "llama3.1": false, "my-deployment": false, "": false, "not-gpt-5": false,
	} {
		if got := Sees(model); got != want {
			t.Errorf("%q: %v", model, got)
		}
	}
}

// TestImagesOnTheWire: a message with images is a list of parts in their order, with detail
// where it was given; one without is a text.
func TestImagesOnTheWire(t *testing.T) {
	c, err := New(Options{Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	for want, m := range map[string]Message{
		`{"content":"Hi","role":"user"}`: {Role: RoleUser, Text: "Hi"},
		`{"content":[{"text":"A","type":"text"},{"image_url":{"url":"data:image/png;base64,AA=="},"type":"image_url"},{"text":"B","type":"text"},{"image_url":{"detail":"low","url":"https://example.com/x"},"type":"image_url"}],"role":"user"}`: {
			Role: RoleUser, Text: "A\nB", Parts: []Part{{Text: "A"}, {Image: "data:image/png;base64,AA=="}, {Text: "B"}, {}, {Image: "https://example.com/x", Detail: "low"}}},
	} {
		raw, err := json.Marshal(c.message(m, false))
		if err != nil {
			t.Fatal(err)
		}
		var plain any
		if err := json.Unmarshal(raw, &plain); err != nil {
			t.Fatal(err)
		}
		got, _ := json.Marshal(plain) // it was just read
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Error(diff)
		}
	}
}
