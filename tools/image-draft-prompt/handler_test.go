package imagedraftprompt

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/registry"
	"voicegw/registry/registrytest"
)

func draft(t *testing.T, idea string, style *ArgsStyle, count int64) []OutputVariantsItem {
	t.Helper()
	result, err := Execute(t.Context(), registry.Call[Args, Needs]{Args: Args{Idea: idea, Style: style, Count: count}})
	if err != nil {
		t.Fatal(err)
	}
	registrytest.Fits(t, "image-draft-prompt", result.Data)
	return result.Data.(Output).Variants
}

// TestVariantsDiffer: with or without a style, all variants differ, each has the idea, and fewer variants are the
// first of more.
func TestVariantsDiffer(t *testing.T) {
	all := []*ArgsStyle{nil}
	for _, s := range styles {
		all = append(all, &s.name)
	}
	for _, style := range all {
		five := draft(t, "a fox", style, 5)
		seen := map[string]bool{}
		for _, v := range five {
			if seen[v.Prompt] || !strings.Contains(v.Prompt, " a fox. ") {
				t.Errorf("%q", v.Prompt)
			}
			seen[v.Prompt] = true
			if style != nil && string(v.Style) != string(*style) || style == nil && strings.Contains(v.Prompt, "%") {
				t.Errorf("%+v, asked for %v", v, style)
			}
		}
		if diff := cmp.Diff(five[:2], draft(t, "a fox", style, 2)); diff != "" {
			t.Error(diff)
		}
	}
	stylesSeen := map[OutputVariantsItemStyle]bool{}
	for _, v := range draft(t, "a fox", nil, 5) {
		stylesSeen[v.Style] = true
	}
	if len(stylesSeen) != 5 {
		t.Errorf("five variants without a style have %d styles", len(stylesSeen))
	}
}

// TestDraftsCanBeGenerated: image_generate accepts the prompts and sizes, and every style of the schema has a
// template.
func TestDraftsCanBeGenerated(t *testing.T) {
	schema := func(file string) (properties map[string]struct {
		Enum      []string `json:"enum"`
		MaxLength int      `json:"maxLength"`
	}) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var spec struct {
			Parameters struct{ Properties json.RawMessage }
		}
		if err := json.Unmarshal(data, &spec); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(spec.Parameters.Properties, &properties); err != nil {
			t.Fatal(err)
		}
		return properties
	}
	generate := schema("../image-generate/schema.json")
	for _, c := range compositions {
		if !strings.Contains(strings.Join(generate["size"].Enum, " "), string(c.size)) {
			t.Errorf("image_generate has no size %s", c.size)
		}
	}
	for _, name := range schema("schema.json")["style"].Enum {
		style := ArgsStyle(name)
		if styleOf(style).name != style {
			t.Errorf("the style %s has no template", name)
		}
		for _, v := range draft(t, strings.Repeat("ü", 500), &style, 5) {
			if n := len([]rune(v.Prompt)); n > generate["prompt"].MaxLength {
				t.Errorf("a prompt has %d characters, image_generate accepts %d", n, generate["prompt"].MaxLength)
			}
		}
	}
}

func TestIdea(t *testing.T) {
	if v := draft(t, "  a fox,\n reading.  ", nil, 1); !strings.Contains(v[0].Prompt, "of a fox, reading. ") {
		t.Errorf("%q", v[0].Prompt)
	}
	for _, blank := range []string{" \n", "...", "\u200b"} {
		_, err := Execute(t.Context(), registry.Call[Args, Needs]{Args: Args{Idea: blank, Count: 1}})
		var e *registry.ToolError
		if !errors.As(err, &e) || e.Type != registry.ErrorValidation {
			t.Errorf("%q: %v", blank, err)
		}
	}
}
