package build

import (
	"encoding/json"
	"strings"
	"testing"

	"voicegw/registry"
)

const outputField = `"title": "Alpha", "tags": ["a-b"], "output": {"type": "object", "$defs": {"item": {"type": "object", "properties": {"score": {"type": ["number", "null"]}, "title": {"type": "string"}}, "required": ["score"], "additionalProperties": false}}, "properties": {
	"results": {"type": "array", "items": {"$ref": "#/$defs/item"}}, "kind": {"enum": ["a", "b"]}, "any": {"type": "object", "additionalProperties": true}, "by_name": {"type": "object", "additionalProperties": {"type": ["object", "null"], "properties": {"n": {"type": "integer"}}, "additionalProperties": false}}, "first": {"$ref": "#/$defs/item"}
}, "required": ["results"], "additionalProperties": false}}`

// TestOutputBinding: the data of a tool becomes a Go type beside its arguments, and the registry file has
// its schema as it was written.
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
