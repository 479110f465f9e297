package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kbSearch is the schema.json of a tool with every kind of argument.
const kbSearch = `{
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
      "return_fields": {"type": "array", "items": {"type": "string", "enum": ["snippet", "full_text", "metadata", "sources", "url"]}, "uniqueItems": true},
      "include_snippets": {"type": "boolean", "default": true}
    },
    "required": ["query"],
    "additionalProperties": false
  }
}`

// kbArgs is what the generator makes of it.
type kbArgs struct {
	Query     string `json:"query"`
	Namespace string `json:"namespace"`
	Filters   *struct {
		Type      *string  `json:"type"`
		Tags      []string `json:"tags"`
		DateRange *struct {
			Start *string `json:"start"`
			End   *string `json:"end"`
		} `json:"date_range"`
	} `json:"filters"`
	TopK            int64    `json:"top_k"`
	ReturnFields    []string `json:"return_fields"`
	IncludeSnippets bool     `json:"include_snippets"`
}

// entry makes an entry of a schema.json, with changes to its top-level keys; null removes one.
func entry(t testing.TB, schema string, changes ...string) Entry {
	t.Helper()
	spec, problems := ParseSpec([]byte(change(t, schema, changes...)))
	if len(problems) > 0 {
		t.Fatalf("the schema of the test is wrong: %v", problems)
	}
	form := json.RawMessage(`{"type":"object"}`)
	return Entry{Spec: spec, Summary: "A tool.", Guide: "# " + spec.ToolID + "\n\nA tool.\n", Forms: Forms{form, form, form}}
}

// change sets top-level keys of a JSON object: each change is "key: JSON", null removes.
func change(t testing.TB, schema string, changes ...string) string {
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

func encodeFile(t testing.TB, entries ...Entry) []byte {
	t.Helper()
	data, err := File{GeneratedAt: "2026-11-20T00:00:00.000Z", GitCommit: "abc", Tools: entries}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func mustLoad(t testing.TB, opts Options, entries ...Entry) *Registry {
	t.Helper()
	r, err := Load(encodeFile(t, entries...), opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type none struct{}

// simple is a tool without arguments whose handler is f.
func simple(t testing.TB, f func(context.Context, Call[none, none]) (Result, error), changes ...string) (Entry, Options, *bytes.Buffer) {
	t.Helper()
	e := entry(t, kbSearch, append([]string{
		`toolId: "probe"`, `idempotencyKey: null`, `preview: null`, `clamp: null`,
		`parameters: {"type":"object","properties":{},"additionalProperties":false}`,
	}, changes...)...)
	var logged bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return e, Options{Handlers: map[string]Handler{"probe": Bind(f)}, Logger: logger}, &logged
}

const writes = `sideEffects: "writes"`

func kbHandler(_ context.Context, call Call[kbArgs, none]) (Result, error) {
	return Result{Data: call.Args}, nil
}

func kbRegistry(t testing.TB) *Registry {
	t.Helper()
	return mustLoad(t, Options{Handlers: map[string]Handler{"kb_search": Bind(kbHandler)}}, entry(t, kbSearch))
}

// envelopeSchema compiles the published schema once.
var envelopeSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat = true
	return compiler.Compile("envelope.schema.json")
})

// checkEnvelope validates an envelope against its published schema and reads it back.
func checkEnvelope(t testing.TB, env Envelope) {
	t.Helper()
	schema, err := envelopeSchema()
	if err != nil {
		t.Fatal(err)
	}
	encoded := env.Encode()
	v, problems, _ := decodeStrict(encoded, MaxFileBytes, maxFileDepth)
	if len(problems) > 0 {
		t.Fatalf("the envelope %s is no JSON: %v", encoded, problems)
	}
	if err := schema.Validate(v); err != nil {
		t.Errorf("the envelope %s is not as its schema: %#v", encoded, err)
	}
	var again Envelope
	if err := json.Unmarshal(encoded, &again); err != nil {
		t.Fatal(err)
	}
	if b := again.Encode(); !bytes.Equal(b, encoded) {
		t.Errorf("read and written again, %s is %s", encoded, b)
	}
}
