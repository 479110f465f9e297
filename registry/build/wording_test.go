package build

import (
	"strings"
	"testing"
)

// TestWording spoils the texts for the model one at a time: invisible characters are refused, and meaningless texts
// cause a warning.
func TestWording(t *testing.T) {
	const schema, guide, handler = "tools/alpha/schema.json", "tools/alpha/guide.md", "tools/alpha/handler.go"
	summary := "one line that tells a model when to use the tool; only this line is in the model's prompt."
	tests := []struct{ name, file, old, with, want string }{
		{"a control character, escaped", schema, `What to look for.`, `What\u0007 to look for.`, "error tools/alpha/schema.json:16 #parameters /parameters/properties/query/description: This has the character U+0007 (a control character)"},
		{"half a character", schema, `What to look for.`, `What \ud83d.`, "error tools/alpha/schema.json:16 #schemajson : The escape \\ud83d at line 16"},
		{"an override", schema, `What to look for.`, "What \u202eto look for.", "U+202E (an override of the direction of writing)"},
		{"an override, escaped", schema, `What to look for.`, `What \u202eto look for.`, "U+202E"},
		{"a name of zero width", schema, `"limit"`, "\"lim\u200bit\"", "error tools/alpha/schema.json:"},
		{"an enum of tags", schema, `"maxLength": 200`, `"enum": ["a\udb40\udc41"]`, "U+E0041 (an invisible tag)"},
		{"the guide", guide, "what to look for", "what \u200bto look for", "error tools/alpha/guide.md:7 #the-files : The line has the character U+200B"},
		{"the guide's direction", guide, "what to look for", "what \u2067to look for", "U+2067"},
		{"the guide's control character", guide, "what to look for", "what \u0085to look for", "error tools/alpha/guide.md:7"},
		{"half a character in an example", guide, `"red bicycles", "limit"`, `"red \ude00", "limit"`, "error tools/alpha/guide.md:15 #the-examples : The escape \\ude00 is half of a character"},
		{"a summary of markup", guide, summary, "<br> **---** ![logo](x.png)", "error tools/alpha/guide.md:3 #the-summary : The summary has markup but no words"},
		{"a description of markup", schema, `"description": "say what the tool does and when a model should call it."`, `"description": "***"`, "error tools/alpha/schema.json:4 #description /description: The description has markup but no words"},
		{"a parameter described by markup", schema, `What to look for.`, `---`, "warning tools/alpha/schema.json:16 #parameters /parameters/properties/query/description: The description has no words"},
		{"a parameter described by nothing", schema, `What to look for.`, ``, "no words"},
		{"a placeholder in the schema", schema, `What to look for.`, `TODO`, "warning tools/alpha/schema.json:16 #parameters /parameters/properties/query/description: The text still has TODO"},
		{"another", schema, `What to look for.`, `FIXME: say it`, "still has FIXME"},
		{"one in the guide", guide, "what to look for", "XXX", "warning tools/alpha/guide.md:7 #guidemd : The line still has XXX"},
		{"the new handler", handler, "do the work. Until then", "TODO: do the work. Until then", "warning tools/alpha/handler.go:19 #handlergo : The handler is still the template"},
		{"a constant preview", schema, `"latencyBudgetMs"`, `"preview": "Do {{it}}?", "latencyBudgetMs"`, "warning tools/alpha/schema.json:10 #preview /preview: The preview names no argument"},
		{"a preview", schema, `"latencyBudgetMs"`, `"preview": "Find {query}[ ({limit})]", "latencyBudgetMs"`, ""},
		{"a parameter missing from the guide", guide, "- `limit`: how", "- unlimited: how", "warning tools/alpha/guide.md:5 #guidemd : The section \"## Parameters\" does not mention limit"},
		{"good text", schema, `What to look for.`, "Was gesucht wird: «Größe», 漢字, 👩\u200d💻. Not a todo.", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := newProject(t, "alpha")
			change(t, dir, tt.file, tt.old, tt.with)
			got := findingLines(mustBuild(t, Options{Dir: dir}))
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("want %q, got\n%s", tt.want, got)
			}
		})
	}
}
