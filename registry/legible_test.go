package registry

import (
	"strings"
	"testing"

	"voicegw/internal/testutil"
	"voicegw/registry/spec"
)

// TestInvisibleCharacters: a schema.json, summary or guide may not contain invisible characters.
func TestInvisibleCharacters(t *testing.T) {
	for _, change := range []struct{ path, old, with string }{
		{"/description", `"description": "`, `"description": "a\u202e`},
		{"/description", `"description": "`, `"description": "a\u0007`},
		{"/parameters/properties/query/description", `"description": "What`, `"description": "\u200bWhat`},
	} {
		data := strings.Replace(testutil.KBSearchSchema, change.old, change.with, 1)
		if data == testutil.KBSearchSchema {
			t.Fatalf("%s is not in the schema of the test", change.old)
		}
		if _, problems := spec.Parse([]byte(data)); len(problems) != 1 || !strings.Contains(problems[0].Message, "people cannot see") {
			t.Errorf("%s: %v", change.with, problems)
		}
	}
	if _, problems := spec.Parse([]byte(strings.Replace(testutil.KBSearchSchema, `"description": "`, `"description": "a\ud800`, 1))); len(problems) != 1 || !strings.Contains(problems[0].Message, "lone surrogate") {
		t.Errorf("a lone surrogate: %v", problems)
	}
	for name, spoil := range map[string]func(*Entry){
		"the summary":          func(e *Entry) { e.Summary = "Finds\u202e things." },
		"the guide":            func(e *Entry) { e.Guide += "\u200b" },
		"a summary of nothing": func(e *Entry) { e.Summary = "***" },
	} {
		e := entry(t, testutil.KBSearchSchema)
		spoil(&e)
		data, err := File{Tools: []Entry{e}}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Load(data, Options{Handlers: map[string]Handler{e.ToolID: Bind(nothing)}}); err == nil || !strings.Contains(err.Error(), "people cannot see") && !strings.Contains(err.Error(), "no word") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
