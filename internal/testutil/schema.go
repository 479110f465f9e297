package testutil

import (
	"encoding/json"
	"strings"
	"testing"
)

// KBSearchSchema is a tool's schema.json with every kind of argument.
const KBSearchSchema = `{
  "toolId": "kb_search", "version": "1.2.0", "description": "Finds records.",
  "category": "retrieval", "sideEffects": "read_only", "idempotent": true, "requiresConfirmation": false,
  "allowedModes": ["text", "voice"], "latencyBudgetMs": 800, "timeoutMs": 2000,
  "idempotencyKey": "{namespace}/{query}", "preview": "Search {query} in {namespace}",
  "clamp": {"voice": {"top_k": 3}},
  "parameters": {
    "type": "object",
    "properties": {
      "query": {"type": "string", "minLength": 1, "maxLength": 200, "description": "What to look for."},
      "namespace": {"type": "string", "enum": ["studio", "personal", "public"], "default": "studio"},
      "filters": {
        "type": "object",
        "properties": {
          "type": {"type": "string", "enum": ["project", "person", "process", "link", "doc"]},
          "tags": {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": 5},
          "date_range": {
            "type": "object",
            "properties": {"start": {"type": "string", "format": "date"}, "end": {"type": "string", "format": "date"}},
            "additionalProperties": false
          }
        },
        "additionalProperties": false
      },
      "top_k": {"type": "integer", "minimum": 1, "maximum": 10, "default": 5},
      "return_fields": {
        "type": "array", "items": {"type": "string", "enum": ["snippet", "full_text", "metadata", "sources", "url"]}, "uniqueItems": true
      },
      "include_snippets": {"type": "boolean", "default": true}
    },
    "required": ["query"],
    "additionalProperties": false
  }
}`

// ChangeJSON sets top-level keys of a JSON object: each change is "key: JSON"; null removes the key.
func ChangeJSON(t testing.TB, schema string, changes ...string) string {
	t.Helper()
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(schema), &object); err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		key, value, _ := strings.Cut(c, ": ")
		object[key] = json.RawMessage(value)
		if value == "null" {
			delete(object, key)
		}
	}
	b, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
