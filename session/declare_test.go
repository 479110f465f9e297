package session

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/registry/adapter"
	"voicegw/transport"
)

// TestConfirmActionForms: confirm_action is not built from a schema.json, so this test compares its two forms by means
// of the adapters.
func TestConfirmActionForms(t *testing.T) {
	same := func(form string, got, want json.RawMessage) {
		t.Helper()
		var a, b any
		if err := json.Unmarshal(got, &a); err != nil {
			t.Fatalf("%s: %v in %s", form, err, got)
		}
		if err := json.Unmarshal(want, &b); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(b, a); diff != "" {
			t.Errorf("%s (-want +got):\n%s", form, diff)
		}
	}
	plain := confirmAction(transport.SchemaJSON).Parameters
	openai, err := adapter.OpenAIParameters(plain)
	if err != nil {
		t.Fatal(err)
	}
	same("JSON Schema", plain, openai)
	gemini, err := adapter.GeminiParameters(plain)
	if err != nil {
		t.Fatal(err)
	}
	same("Gemini", confirmAction(transport.SchemaOpenAPI).Parameters, gemini)
}
