package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"go.uber.org/goleak"

	"voicegw/internal/testutil"
	"voicegw/registry/document"
	"voicegw/registry/spec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kbArgs is the generator's type for it.
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
	spec, problems := spec.Parse([]byte(testutil.ChangeJSON(t, schema, changes...)))
	if len(problems) > 0 {
		t.Fatalf("the schema of the test is wrong: %v", problems)
	}
	form := json.RawMessage(`{"type":"object"}`)
	return Entry{Spec: spec, Summary: "A tool.", Guide: "# " + spec.ToolID + "\n\nA tool.\n", Forms: Forms{form, form, form}}
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
	e := entry(t, testutil.KBSearchSchema, append([]string{
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
	return mustLoad(t, Options{Handlers: map[string]Handler{"kb_search": Bind(kbHandler)}}, entry(t, testutil.KBSearchSchema))
}

// envelopeSchema compiles the published schema once.
var envelopeSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat = true
	return compiler.Compile("envelope.schema.json")
})

// checkEnvelope validates an envelope against its published schema and decodes it.
func checkEnvelope(t testing.TB, env Envelope) {
	t.Helper()
	schema, err := envelopeSchema()
	if err != nil {
		t.Fatal(err)
	}
	encoded := env.Encode()
	v, problems, _ := document.Decode(encoded, MaxFileBytes, maxFileDepth)
	if len(problems) > 0 {
		t.Fatalf("the envelope %s is not JSON: %v", encoded, problems)
	}
	if err := schema.Validate(v); err != nil {
		t.Errorf("the envelope %s does not match its schema: %#v", encoded, err)
	}
	var again Envelope
	if err := json.Unmarshal(encoded, &again); err != nil {
		t.Fatal(err)
	}
	if b := again.Encode(); !bytes.Equal(b, encoded) {
		t.Errorf("read and written again, %s is %s", encoded, b)
	}
}

func mustMarshal(t testing.TB, v any) []byte {
	t.Helper()
	b, err := document.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Execute is Prepare, Clamp with the tool's own limits, and Run.
func (s *Snapshot) Execute(ctx context.Context, id string, mode spec.Mode, raw json.RawMessage, session Session, caps ...any) Envelope {
	p, refused := s.Prepare(id, mode, raw)
	if refused != nil {
		return *refused
	}
	p.Clamp(nil)
	return p.Run(ctx, session, caps...)
}
