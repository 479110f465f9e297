package registry

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"voicegw/internal/testutil"
	"voicegw/registry/document"
	"voicegw/registry/spec"
)

const foundSchema = `output: {"type":"object","properties":{
	"results":{"type":"array","maxItems":2,"items":{"type":"object","properties":{"title":{"type":"string","maxLength":5},"score":{"type":"number","minimum":0,"maximum":1}},"required":["title"],"additionalProperties":false}},
	"note":{"type":"string"}},"required":["results"],"additionalProperties":false}`

// TestOutput: data that matches the tool's schema is passed on unchanged, a nil slice as an empty list; other data is
// withheld, and the answer and the log name the invalid places.
func TestOutput(t *testing.T) {
	type item struct {
		Title string   `json:"title"`
		Score *float64 `json:"score,omitzero"`
	}
	type found struct {
		Results []item `json:"results"`
		Note    string `json:"note,omitempty"`
	}
	high := 1.5
	for name, tt := range map[string]struct {
		data any
		want string
		at   []string // the invalid places
	}{
		"good":        {found{Results: []item{{Title: "a"}}, Note: "b"}, `{"results":[{"title":"a"}],"note":"b"}`, nil},
		"nil slice":   {found{}, `{"results":[]}`, nil},
		"nothing":     {nil, "", []string{""}},
		"a list":      {[]int{1}, "", []string{""}},
		"too long":    {found{Results: []item{{Title: "secret"}}}, "", []string{"/results/0/title"}},
		"two places":  {found{Results: []item{{Title: "a", Score: &high}, {Title: "secret"}}}, "", []string{"/results/0/score", "/results/1/title"}},
		"too many":    {found{Results: make([]item, 3)}, "", []string{"/results"}},
		"an unknown":  {map[string]any{"results": []int{}, "secret": 1}, "", []string{"/secret"}},
		"null inside": {map[string]any{"results": []any{map[string]any{"title": nil}}}, "", []string{"/results/0/title"}},
	} {
		t.Run(name, func(t *testing.T) {
			e, opts, logged := simple(t, func(context.Context, Call[none, none]) (Result, error) {
				return Result{Data: tt.data}, nil
			}, foundSchema, writes, `category: "action"`)
			env := mustLoad(t, opts, e).Snapshot().Execute(t.Context(), "probe", spec.ModeText, nil, Session{})
			checkEnvelope(t, env)
			if tt.at == nil {
				if !env.OK || string(env.Data) != tt.want {
					t.Errorf("got %s %v, want %s", env.Data, env.Error, tt.want)
				}
				return
			}
			if env.OK || env.Error.Type != ErrorInternal || !env.Error.PartialSideEffects || !strings.Contains(env.Error.Message, "has the wrong form") {
				t.Fatalf("got %s", env.Encode())
			}
			var details struct{ Errors []document.Problem }
			if err := json.Unmarshal(env.Error.Details, &details); err != nil || len(details.Errors) != len(tt.at) {
				t.Fatalf("details %s: %v", env.Error.Details, err)
			}
			for i, place := range tt.at {
				if details.Errors[i].Path != place || !strings.Contains(logged.String(), place) {
					t.Errorf("broken at %s; details %s, log %s", place, env.Error.Details, logged)
				}
			}
			if strings.Contains(strings.ReplaceAll(logged.String(), "/secret", ""), "secret") {
				t.Errorf("the log holds a value: %s", logged)
			}
		})
	}
}

// TestOutputIsBounded: only some of a result's many faults are reported.
func TestOutputIsBounded(t *testing.T) {
	e, opts, _ := simple(t, func(context.Context, Call[none, none]) (Result, error) {
		return Result{Data: map[string]any{"list": make([]string, 500)}}, nil
	}, `output: {"type":"object","properties":{"list":{"type":"array","items":{"type":"string","minLength":1}}},"additionalProperties":false}`)
	env := mustLoad(t, opts, e).Snapshot().Execute(t.Context(), "probe", spec.ModeText, nil, Session{})
	var details struct {
		Errors []document.Problem
		More   int
	}
	if err := json.Unmarshal(env.Error.Details, &details); err != nil || len(details.Errors) != document.MaxProblems || details.More != 500-document.MaxProblems {
		t.Errorf("%d errors, %d more: %v", len(details.Errors), details.More, err)
	}
}

// TestEnvelopeSchemaIsPublished: each file has the schema of the envelope, and a file with another one is refused.
func TestEnvelopeSchemaIsPublished(t *testing.T) {
	data := encodeFile(t, entry(t, testutil.KBSearchSchema))
	var file File
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	v, _, _ := document.Decode(file.Envelope, MaxFileBytes, maxFileDepth)
	if !sameJSON(v, EnvelopeSchema()) {
		t.Errorf("the file has %s", file.Envelope)
	}
	opts := Options{Handlers: map[string]Handler{"kb_search": Bind(kbHandler)}}
	if _, err := Load([]byte(strings.Replace(string(data), `"SUPPRESS_AUDIO"`, `"SUPPRESS"`, 1)), opts); err == nil || !strings.Contains(err.Error(), "/envelope") {
		t.Errorf("another schema of the envelope: %v", err)
	}
}

const mapSchema = `output: {"type":"object","properties":{
	"any":{"type":"object","additionalProperties":true},
	"lists":{"type":["object"],"additionalProperties":{"type":"array","items":{"type":"integer"}}},
	"maybe":{"type":["object","null"],"additionalProperties":{"type":"string"}}},"additionalProperties":false}`

// TestOutputMap: an object with unknown names has values of one form, or any; a nil map of Go is an empty object, and
// a nil slice in it an empty list.
func TestOutputMap(t *testing.T) {
	for name, tt := range map[string]struct{ data, want, at string }{
		"any":           {`{"any":{"a":1,"b":[null,{"c":[]}]}}`, `{"any":{"a":1,"b":[null,{"c":[]}]}}`, ""},
		"nil":           {`{"any":null,"lists":null,"maybe":null}`, `{"any":{},"lists":{},"maybe":null}`, ""},
		"nil inside":    {`{"lists":{"a":null,"b":[1]}}`, `{"lists":{"a":[],"b":[1]}}`, ""},
		"not an object": {`{"any":1}`, "", "/any"},
		"wrong value":   {`{"lists":{"a":[1],"b":["x"]}}`, "", "/lists/b/0"},
		"a null":        {`{"maybe":{"a":null}}`, "", "/maybe/a"},
	} {
		t.Run(name, func(t *testing.T) {
			e, opts, _ := simple(t, func(context.Context, Call[none, none]) (Result, error) {
				return Result{Data: json.RawMessage(tt.data)}, nil
			}, mapSchema)
			env := mustLoad(t, opts, e).Snapshot().Execute(t.Context(), "probe", spec.ModeText, nil, Session{})
			checkEnvelope(t, env)
			switch {
			case tt.at == "" && string(env.Data) != tt.want:
				t.Errorf("got %s %v, want %s", env.Data, env.Error, tt.want)
			case tt.at != "" && (env.OK || !strings.Contains(string(env.Error.Details), `"path":"`+tt.at+`"`)):
				t.Errorf("got %s", env.Encode())
			}
		})
	}
}

// TestOutputIsClosedElsewhere: unknown names are only allowed in a map, which has no names of its own and is not the
// whole data; a map in parameters is refused.
func TestOutputIsClosedElsewhere(t *testing.T) {
	const open = `{"type":"object","additionalProperties":true}`
	inside := func(schema string) string {
		return `{"type":"object","properties":{"a":` + schema + `},"additionalProperties":false}`
	}
	for name, tt := range map[string]struct {
		compile func(json.RawMessage) (*document.Schema, []document.Problem)
		schema  string
		at      string
	}{
		"a map":                {document.CompileOutput, inside(open), ""},
		"a map of maps":        {document.CompileOutput, inside(`{"type":"object","additionalProperties":` + open + `}`), ""},
		"the whole":            {document.CompileOutput, open, "/additionalProperties"},
		"with names":           {document.CompileOutput, inside(`{"type":"object","properties":{"b":{"type":"string"}},"additionalProperties":true}`), "/properties/a/additionalProperties"},
		"unspecified":          {document.CompileOutput, inside(`{"type":"object"}`), "/properties/a"},
		"a value of any kind":  {document.CompileOutput, inside(`{"type":"object","additionalProperties":{}}`), "/properties/a/additionalProperties"},
		"an open value":        {document.CompileOutput, inside(`{"type":"object","additionalProperties":{"type":"object"}}`), "/properties/a/additionalProperties"},
		"a default in a map":   {document.CompileOutput, inside(`{"type":"object","additionalProperties":{"type":"string","default":"x"}}`), "/properties/a/additionalProperties/default"},
		"a map in $defs":       {document.CompileOutput, `{"type":"object","$defs":{"m":` + open + `},"properties":{"a":{"$ref":"#/$defs/m"}},"additionalProperties":false}`, ""},
		"a map of a parameter": {document.CompileParameters, inside(open), "/properties/a/additionalProperties"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := tt.compile(json.RawMessage(tt.schema))
			if tt.at == "" && len(problems) > 0 || tt.at != "" && (len(problems) != 1 || problems[0].Path != tt.at) {
				t.Errorf("got %+v, want one at %q", problems, tt.at)
			}
		})
	}
}

// TestCheckHasNoOutput: the output schema applies to Execute, not to the tool's own check.
func TestCheckHasNoOutput(t *testing.T) {
	e, opts, _ := simple(t, nil, foundSchema)
	opts.Handlers["probe"] = Bind(func(context.Context, Call[none, none]) (Result, error) {
		return Result{Data: json.RawMessage(`{"results":[]}`)}, nil
	}, func(context.Context, Call[none, none]) error { return nil })
	p, refused := mustLoad(t, opts, e).Snapshot().Prepare("probe", spec.ModeText, nil)
	if refused != nil {
		t.Fatalf("%s", refused.Encode())
	}
	if env := p.Check(t.Context(), Session{}); env != nil {
		t.Errorf("the check is refused: %s", env.Encode())
	}
	if env := p.Run(t.Context(), Session{}); !env.OK || string(env.Data) != `{"results":[]}` {
		t.Errorf("got %s", env.Encode())
	}
}
