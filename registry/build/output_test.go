package build

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"voicegw/registry"
)

const outputField = `"title": "Alpha", "tags": ["a-b"], "output": {"type": "object", "$defs": {"item": {"type": "object", "properties": {"score": {"type": ["number", "null"]}, "title": {"type": "string"}}, "required": ["score"], "additionalProperties": false}}, "properties": {
	"results": {"type": "array", "items": {"$ref": "#/$defs/item"}}, "kind": {"enum": ["a", "b"]}, "any": {"type": "object", "additionalProperties": true}, "by_name": {"type": "object", "additionalProperties": {"type": ["object", "null"], "properties": {"n": {"type": "integer"}}, "additionalProperties": false}}, "first": {"$ref": "#/$defs/item"}
}, "required": ["results"], "additionalProperties": false}}`

// TestOutputBinding: a tool's output becomes a Go type next to its arguments, and the registry file has its schema
// unchanged.
func TestOutputBinding(t *testing.T) {
	dir := newProject(t, "alpha")
	schema := read(t, dir, "tools/alpha/schema.json")
	change(t, dir, "tools/alpha/schema.json", schema[strings.Index(schema, `"output"`):], outputField)
	report := mustBuild(t, Options{Dir: dir})
	if report.Errors() > 0 {
		t.Fatal(findingLines(report))
	}
	text := read(t, dir, "tools/alpha/"+ArgsFile)
	if err := newChecker(t).check([]byte(text)); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	for _, part := range []string{"type Args struct", "// Output is the data of an answer that is ok.\ntype Output struct", "Results []OutputResultsItem `json:\"results\"`",
		"Kind *OutputKind `json:\"kind,omitzero\"`", "Any map[string]any `json:\"any,omitzero\"`", "ByName map[string]*OutputByNameValue `json:\"by_name,omitzero\"`", "First *OutputFirst `json:\"first,omitzero\"`", "Score *float64 `json:\"score\"`"} {
		if !strings.Contains(text, part) && !strings.Contains(strings.Join(strings.Fields(text), " "), part) {
			t.Errorf("the generated file lacks %s\n%s", part, text)
		}
	}
	var file registry.File
	if err := json.Unmarshal([]byte(read(t, dir, RegistryFile)), &file); err != nil {
		t.Fatal(err)
	}
	if e := file.Tools[0]; e.Title != "Alpha" || len(e.Tags) != 1 || !strings.Contains(string(e.Output), `"$defs"`) {
		t.Errorf("the registry has title %q, tags %v, output %s", e.Title, e.Tags, e.Output)
	}
}

// TestOutputIsGeneratedForCodeThatNamesIt: a new tool uses its output and has the types, one that stops using them
// loses them, and one that starts using them, even only in a test, gets them.
func TestOutputIsGeneratedForCodeThatNamesIt(t *testing.T) {
	dir := newProject(t, "alpha")
	const generated = "tools/alpha/" + ArgsFile
	has := func(when string, want bool) {
		t.Helper()
		if report := mustBuild(t, Options{Dir: dir}); report.Errors() > 0 {
			t.Fatalf("%s:\n%s", when, findingLines(report))
		}
		text := read(t, dir, generated)
		if err := newChecker(t).check([]byte(text)); err != nil {
			t.Errorf("%s: %v\n%s", when, err, text)
		}
		if got := strings.Contains(text, "type Output struct"); got != want || !strings.Contains(text, "type Args struct") {
			t.Errorf("%s: generated is %v, want %v:\n%s", when, got, want, text)
		}
	}
	if text := read(t, dir, generated); !strings.Contains(text, "type Output struct") {
		t.Errorf("voicegw tools new has written\n%s", text)
	}
	has("as it was written", true)

	for _, file := range []string{"tools/alpha/handler.go", "tools/alpha/handler_test.go"} {
		change(t, dir, file, "Output", "answer")
	}
	change(t, dir, "tools/alpha/handler.go", "type Needs struct{}", "type Needs struct{}\n\n// answer is not an Output.\ntype answer struct{ Results []answerResultsItem }\n\ntype answerResultsItem struct{ Title string }")
	has("with a type of the author's own, and Output in a comment", false)
	change(t, dir, "tools/alpha/handler_test.go", "func TestFinds(", "var _ OutputResultsItem\n\nfunc TestFinds(")
	has("named in the test only", true)
	change(t, dir, "tools/alpha/handler_test.go", "var _ OutputResultsItem\n", "")
	change(t, dir, "tools/alpha/handler.go", "answerResultsItem", "OutputResultsItem")
	change(t, dir, "tools/alpha/handler.go", "type OutputResultsItem struct{ Title string }", "")
	has("named in the handler before it was generated", true)
}

// TestUnusedOutputIsChecked: an output without a Go type is refused even if it is unused.
func TestUnusedOutputIsChecked(t *testing.T) {
	form := []byte(`{"type":"object","properties":{"a,b":{"type":"string"}},"additionalProperties":false}`)
	for _, named := range []bool{true, false} {
		text, err := argsSource("tool", bindings{parameters: []byte(`{"type":"object"}`), output: form, named: named})
		if !errors.Is(err, errTypes) {
			t.Errorf("named %v: it became %v\n%s", named, err, text)
		}
	}
}
