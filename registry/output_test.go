package registry

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

const foundSchema = `output: {"type":"object","properties":{
	"results":{"type":"array","maxItems":2,"items":{"type":"object","properties":{"title":{"type":"string","maxLength":5},"score":{"type":"number","minimum":0,"maximum":1}},"required":["title"],"additionalProperties":false}},
	"note":{"type":"string"}},"required":["results"],"additionalProperties":false}`

// TestOutput: data that fits the tool's own schema is handed on as it is, a nil slice as an empty list; data
// that does not fit reaches nobody, and the answer and the log say where it breaks the schema.
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
		at   []string // the places of a broken one
	}{
		"good":        {found{Results: []item{{Title: "a"}}, Note: "b"}, `{"results":[{"title":"a"}],"note":"b"}`, nil},
		"nil slice":   {found{}, `{"results":[]}`, nil},
		"nothing":     {nil, "", []string{""}},
		"a list":      {[]int{1}, "", []string{""}},
		"too long":    {found{Results: []item{{Title: "secret"}}}, "", []string{"/results/0/title"}},
		"two places":  {found{Results: []item{{Title: "a", Score: &high}, {Title: "secret"}}}, "", []string{"/results/0/score", "/results/1/title"}},
		"too many":    {found{Results: make([]item, 3)}, "", []string{"/results"}},
		"a stranger":  {map[string]any{"results": []int{}, "secret": 1}, "", []string{"/secret"}},
		"null inside": {map[string]any{"results": []any{map[string]any{"title": nil}}}, "", []string{"/results/0/title"}},
	} {
		t.Run(name, func(t *testing.T) {
			e, opts, logged := simple(t, func(context.Context, Call[none, none]) (Result, error) {
				return Result{Data: tt.data}, nil
			}, foundSchema, writes, `category: "action"`)
			env := mustLoad(t, opts, e).Snapshot().Execute(t.Context(), "probe", ModeText, nil, Session{})
			checkEnvelope(t, env)
			if tt.at == nil {
				if !env.OK || string(env.Data) != tt.want {
					t.Errorf("got %s %v, want %s", env.Data, env.Error, tt.want)
				}
				return
			}
			if env.OK || env.Error.Type != ErrorInternal || !env.Error.PartialSideEffects || !strings.Contains(env.Error.Message, "not in the form") {
				t.Fatalf("got %s", env.Encode())
			}
			var details struct{ Errors []Problem }
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

// TestOutputIsBounded: of a result with many faults only some are told.
func TestOutputIsBounded(t *testing.T) {
	e, opts, _ := simple(t, func(context.Context, Call[none, none]) (Result, error) {
		return Result{Data: map[string]any{"list": make([]string, 500)}}, nil
	}, `output: {"type":"object","properties":{"list":{"type":"array","items":{"type":"string","minLength":1}}},"additionalProperties":false}`)
	env := mustLoad(t, opts, e).Snapshot().Execute(t.Context(), "probe", ModeText, nil, Session{})
	var details struct {
		Errors []Problem
		More   int
	}
	if err := json.Unmarshal(env.Error.Details, &details); err != nil || len(details.Errors) != maxArgProblems || details.More != 500-maxArgProblems {
		t.Errorf("%d errors, %d more: %v", len(details.Errors), details.More, err)
	}
}

// TestEnvelopeSchemaIsPublished: each file has the schema of the envelope, and one with another is refused.
func TestEnvelopeSchemaIsPublished(t *testing.T) {
	data := encodeFile(t, entry(t, kbSearch))
	var file File
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	v, _, _ := decodeStrict(file.Envelope, MaxFileBytes, maxFileDepth)
	if !sameJSON(v, EnvelopeSchema()) {
		t.Errorf("the file has %s", file.Envelope)
	}
	opts := Options{Handlers: map[string]Handler{"kb_search": Bind(kbHandler)}}
	if _, err := Load([]byte(strings.Replace(string(data), `"SUPPRESS_AUDIO"`, `"SUPPRESS"`, 1)), opts); err == nil || !strings.Contains(err.Error(), "/envelope") {
		t.Errorf("another schema of the envelope: %v", err)
	}
}
