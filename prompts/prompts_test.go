package prompts

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite testdata")

func tools() []ToolSummary {
	return []ToolSummary{
		{ID: "kb_search", Category: "retrieval", Summary: "Searches the knowledge base\nand returns evidence."},
		{ID: "end_voice_session", Category: "utility", Summary: "Ends the call after a farewell."},
	}
}

func TestCompose(t *testing.T) {
	tests := map[string]Options{
		"voice":        {},
		"voice-tools":  {Tools: tools(), Retrievals: 2, TopK: 3, RegistryVersion: "1.0.0a1b2c3d", Instructions: "You work for a bicycle shop."},
		"voice-spoken": {Tools: tools(), Retrievals: 4, TopK: 6, SpokenConfirmation: true, Mark: "[voicegw:drawn]"},
		"text":         {Mode: Text},
		"text-tools":   {Mode: Text, Tools: tools(), Retrievals: 5, TopK: 10, RegistryVersion: "1.0.0a1b2c3d", Mark: "[voicegw:drawn]"},
		"own-files":    {Core: "\r\nOwn core.\r\n\r\nStill core.\r\n\r\n", Behavior: "Own behavior.\n", Instructions: "  Who I am.  "},
	}
	for name, o := range tests {
		t.Run(name, func(t *testing.T) {
			got := Compose(o)
			path := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v (go test ./prompts -update writes it)", err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestComposeIsPure(t *testing.T) {
	given := tools()
	first := Compose(Options{Tools: given})
	if diff := cmp.Diff(tools(), given); diff != "" {
		t.Errorf("the given tools were changed: %s", diff)
	}
	slices.Reverse(given)
	if second := Compose(Options{Tools: given}); first != second {
		t.Error("the order of the tools makes a difference")
	}
}

func TestPromptWithoutTools(t *testing.T) {
	for _, mode := range []Mode{Voice, Text} {
		if text := Compose(Options{Mode: mode, RegistryVersion: "1.0.0"}); strings.Contains(text, "Your tools") || strings.Contains(text, "retrieval") {
			t.Errorf("%s: a model without tools gets instructions about them", mode)
		}
	}
}

// TestDateInThePrompt: the text has the date, the weekday and the user's zone, directly before the mark.
func TestDateInThePrompt(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 29, 23, 30, 0, 0, time.UTC).In(berlin)
	text := Compose(Options{Now: now, Mark: "m", Instructions: "Help."})
	if want := "Today is Monday, 30 November 2026. The user's time zone is Europe/Berlin (UTC+01:00)."; !strings.Contains(text, want) {
		t.Errorf("%q is missing in %s", want, text)
	}
	if strings.Index(text, "Today is") < strings.Index(text, "Help.") {
		t.Error("the date is before text that a provider can cache for longer")
	}
	if text := Compose(Options{}); strings.Contains(text, "Today is") {
		t.Errorf("an unknown date is in the text: %s", text)
	}
}
