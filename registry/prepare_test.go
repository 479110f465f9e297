package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/testutil"
	"voicegw/registry/document"
	"voicegw/registry/spec"
)

func TestPrepare(t *testing.T) {
	s := kbRegistry(t).Snapshot()
	p, refused := s.Prepare("kb_search", spec.ModeVoice, json.RawMessage(` {"top_k": 7.0, "query": "Ada <&> \u00e4", "filters": {"tags": ["a"]}} `))
	if refused != nil {
		t.Fatal(string(refused.Encode()))
	}
	if want := `{"filters":{"tags":["a"]},"include_snippets":true,"namespace":"studio","query":"Ada <&> ä","top_k":7}`; string(p.Args()) != want {
		t.Errorf("the arguments are %s, want %s", p.Args(), want)
	}
	if diff := cmp.Diff([]string{"/include_snippets", "/namespace"}, p.defaults); diff != "" {
		t.Error(diff)
	}
	if p.Mode() != spec.ModeVoice || p.Tool().ToolID != "kb_search" {
		t.Error("wrong mode or tool")
	}
	if p.BusinessKey() != `"studio"/"Ada <&> ä"` || p.Preview() != "Search Ada <&> ä in studio" {
		t.Errorf("key %q, preview %q", p.BusinessKey(), p.Preview())
	}
	if p, refused := s.Prepare(spec.DescribeTool, spec.ModeText, json.RawMessage(`{"tool":"kb_search"}`)); refused != nil || p.BusinessKey() != "" || p.Preview() != `describe_tool {"tool":"kb_search"}` {
		t.Error("a tool without templates has the wrong ones")
	}
}

func TestPrepareRefuses(t *testing.T) {
	e := entry(t, testutil.KBSearchSchema, `toolId: "text_only"`, `allowedModes: ["text"]`, `clamp: null`)
	r := mustLoad(t, Options{Handlers: map[string]Handler{"kb_search": Bind(kbHandler), "text_only": Bind(kbHandler)}}, entry(t, testutil.KBSearchSchema), e)
	tests := []struct {
		name, tool, args string
		mode             spec.Mode
		typ              ErrorType
		message, details string
	}{
		{"unknown tool", "kb_serach", `{}`, spec.ModeText, ErrorNotFound, `There is no tool named "kb_serach".`, ``},
		{"long name", strings.Repeat("x", 10_000), `{}`, spec.ModeText, ErrorNotFound, `There is no tool named "` + strings.Repeat("x", 100) + `…".`, ``},
		{"other mode", "text_only", `{"query":"x"}`, spec.ModeVoice, ErrorModeRestricted, `The tool text_only cannot be used in voice mode.`, ``},
		{"no mode", "text_only", `{"query":"x"}`, "", ErrorModeRestricted, `The tool text_only cannot be used in  mode.`, ``},
		{"all errors", "kb_search", `{"top_k":50,"filters":{"type":"cat","tags":["a",""]},"k":1}`, spec.ModeText, ErrorValidation,
			`The arguments of kb_search are not valid: /filters/tags/1: must not be empty, at least 1 characters; /filters/type: must be one of "project", "person", "process", "link", "doc", got "cat"; /k: is not a known parameter; known here: filters, include_snippets, namespace, query, return_fields, top_k; and 2 more.`,
			`{"errors":[{"path":"/filters/tags/1","message":"must not be empty, at least 1 characters"},{"path":"/filters/type","message":"must be one of \"project\", \"person\", \"process\", \"link\", \"doc\", got \"cat\""},{"path":"/k","message":"is not a known parameter; known here: filters, include_snippets, namespace, query, return_fields, top_k"},{"path":"/query","message":"is required and missing: What to look for."},{"path":"/top_k","message":"must be at most 10, got 50"}]}`},
		{"nothing sent", "kb_search", ``, spec.ModeText, ErrorValidation, `The arguments of kb_search are not valid: /query: is required and missing: What to look for..`, ``},
		{"null", "kb_search", `null`, spec.ModeText, ErrorValidation, `The arguments of kb_search are not valid: the arguments: must be an object with the arguments by name, got null.`, ``},
		{"duplicate", "kb_search", `{"query":"x","query":"y"}`, spec.ModeText, ErrorValidation, `The arguments of kb_search are not valid: /query: The object has the key "query" twice; remove one.`, ``},
		{"half", "kb_search", `{"query":"x`, spec.ModeText, ErrorValidation, `The arguments of kb_search are not valid: /query: This is not valid JSON: it ends in the middle.`, ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, env := r.Snapshot().Prepare(tt.tool, tt.mode, json.RawMessage(tt.args))
			if env == nil {
				t.Fatal("it was accepted")
			}
			checkEnvelope(t, *env)
			if env.Error.Type != tt.typ {
				t.Errorf("got %s", env.Error.Type)
			}
			if diff := cmp.Diff(strings.Replace(tt.message, "..", ".", 1), env.Error.Message); diff != "" {
				t.Error(diff)
			}
			if tt.details != "" {
				if diff := cmp.Diff(tt.details, string(env.Error.Details)); diff != "" {
					t.Error(diff)
				}
			}
			if (env.Meta.ToolVersion == "") != (tt.typ == ErrorNotFound) {
				t.Errorf("the version of the tool is %q", env.Meta.ToolVersion)
			}
		})
	}
	stats := r.Stats()
	if s := stats[UnknownTool]; s.Calls != 2 || s.Errors[ErrorNotFound] != 2 {
		t.Errorf("unknown tools: %+v", s)
	}
	if s := stats["kb_search"]; s.Calls != 5 || s.Errors[ErrorValidation] != 5 || s.OK != 0 {
		t.Errorf("kb_search: %+v", s)
	}
	if len(stats) != 3 {
		t.Errorf("counters for %d tools", len(stats))
	}
}

func TestPrepareBoundsItsErrors(t *testing.T) {
	var args []string
	for i := range 500 {
		args = append(args, fmt.Sprintf(`"x%d%s":1`, i, strings.Repeat("x", 100)))
	}
	_, env := kbRegistry(t).Snapshot().Prepare("kb_search", spec.ModeText, json.RawMessage(`{`+strings.Join(args, ",")+`}`))
	if env == nil {
		t.Fatal("it was accepted")
	}
	if n := len(env.Encode()); n > 16<<10 {
		t.Errorf("the answer has %d bytes", n)
	}
	var details struct {
		Errors []document.Problem
		More   int
	}
	if err := json.Unmarshal(env.Error.Details, &details); err != nil || len(details.Errors) != document.MaxProblems || details.More != 481 {
		t.Errorf("%d errors, %d more, %v", len(details.Errors), details.More, err)
	}
}

// TestNumbersStayExact: numbers beyond the precision of a double reach the handler exactly.
func TestNumbersStayExact(t *testing.T) {
	type args struct {
		Big   int64       `json:"big"`
		Exact json.Number `json:"exact"`
	}
	var got args
	e := entry(t, testutil.KBSearchSchema, `toolId: "probe"`, `idempotencyKey: null`, `preview: null`, `clamp: null`,
		`parameters: {"type":"object","properties":{"big":{"type":"integer"},"exact":{"type":"number"}},"additionalProperties":false}`)
	r := mustLoad(t, Options{Handlers: map[string]Handler{"probe": Bind(func(_ context.Context, call Call[args, none]) (Result, error) {
		got = call.Args
		return Result{Data: call.Args}, nil
	})}}, e)
	env := r.Snapshot().Execute(t.Context(), "probe", spec.ModeText, json.RawMessage(`{"big":9.007199254740993e15,"exact":0.10000000000000000000000001}`), Session{})
	if !env.OK || got.Big != 9007199254740993 || got.Exact != "0.10000000000000000000000001" {
		t.Errorf("got %+v, %s", got, env.Encode())
	}
	_, refused := r.Snapshot().Prepare("probe", spec.ModeText, json.RawMessage(`{"big":10000000000000000000}`))
	if refused == nil || refused.Error.Type != ErrorValidation || !strings.Contains(refused.Error.Message, "/big: is out of range") {
		t.Errorf("beyond 64 bits: %+v", refused)
	}
}

func TestClamp(t *testing.T) {
	s := kbRegistry(t).Snapshot()
	tests := []struct {
		name, args string
		mode       spec.Mode
		limits     map[string]int
		want       map[string]Clamped
		topK       string
	}{
		{"the tool's own", `{"query":"x","top_k":10}`, spec.ModeVoice, nil, map[string]Clamped{"top_k": {"10", 3}}, `"top_k":3`},
		{"the default too", `{"query":"x"}`, spec.ModeVoice, nil, map[string]Clamped{"top_k": {"5", 3}}, `"top_k":3`},
		{"not in text", `{"query":"x","top_k":10}`, spec.ModeText, nil, nil, `"top_k":10`},
		{"the caller's is lower", `{"query":"x"}`, spec.ModeVoice, map[string]int{"top_k": 2}, map[string]Clamped{"top_k": {"5", 2}}, `"top_k":2`},
		{"the tool's is lower", `{"query":"x"}`, spec.ModeVoice, map[string]int{"top_k": 4}, map[string]Clamped{"top_k": {"5", 3}}, `"top_k":3`},
		{"at the limit", `{"query":"x","top_k":3}`, spec.ModeVoice, nil, nil, `"top_k":3`},
		{"of an argument that is not a number, and of one that is missing", `{"query":"x","top_k":1}`, spec.ModeText, map[string]int{"query": 1, "gone": 1}, nil, `"top_k":1`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, refused := s.Prepare("kb_search", tt.mode, json.RawMessage(tt.args))
			if refused != nil {
				t.Fatal(string(refused.Encode()))
			}
			if diff := cmp.Diff(tt.want, p.Clamp(tt.limits)); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(string(p.Args()), tt.topK) {
				t.Errorf("the arguments are %s", p.Args())
			}
			env := p.Run(t.Context(), Session{})
			checkEnvelope(t, env)
			if diff := cmp.Diff(tt.want, env.Meta.Clamped); diff != "" {
				t.Error(diff)
			}
			if !bytes.Contains(env.Data, []byte(tt.topK)) {
				t.Errorf("the handler got %s", env.Data)
			}
		})
	}
	p, _ := s.Prepare("kb_search", spec.ModeVoice, json.RawMessage(`{"query":"x","top_k":10}`))
	p.Clamp(nil)
	if diff := cmp.Diff(map[string]Clamped{"top_k": {"10", 1}}, p.Clamp(map[string]int{"top_k": 1})); diff != "" {
		t.Error("clamped again: " + diff)
	}
	if tool, _ := s.Tool("kb_search"); tool.Clamp[spec.ModeVoice]["top_k"] != 3 {
		t.Error("a call changed the tool")
	}
}

func FuzzPrepare(f *testing.F) {
	for _, seed := range []string{
		`{"query":"x"}`, ``, `null`, `{"query":"x","top_k":1e400}`, `{"query":"x","filters":{"date_range":{"start":"2026-13-01"}}}`,
		`{"query":"x","return_fields":["url","url"]}`, `{"query":"x","":{},"a/b~":1,"%":2}`, `{"query":"\ud800"}`, `[{"query":1}]`,
	} {
		f.Add([]byte(seed))
	}
	s := kbRegistry(f).Snapshot()
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, refused := s.Prepare("kb_search", spec.ModeVoice, raw)
		if (p == nil) == (refused == nil) {
			t.Fatal("neither or both")
		}
		if refused != nil {
			checkEnvelope(t, *refused)
			return
		}
		again, refused := s.Prepare("kb_search", spec.ModeVoice, p.Args())
		if refused != nil {
			t.Fatalf("%q became %s, which is refused: %s", raw, p.Args(), refused.Encode())
		}
		if !bytes.Equal(p.Args(), again.Args()) || len(again.defaults) > 0 {
			t.Fatalf("%q became %s, and that %s with the defaults %v", raw, p.Args(), again.Args(), again.defaults)
		}
		p.Clamp(nil)
		if env := p.Run(t.Context(), Session{}); !env.OK {
			t.Fatalf("%s", env.Encode())
		}
	})
}
