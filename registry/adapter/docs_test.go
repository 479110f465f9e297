package adapter_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/registry/adapter"
)

const (
	tableBegin = "<!-- keywords: written by go test ./registry/adapter -update -->\n"
	tableEnd   = "<!-- keywords end -->\n"
)

// keywordTable prints the keywords for the document: those that every form keeps, and the rest.
func keywordTable() string {
	var everywhere []string
	var rest strings.Builder
	for _, k := range keywords {
		if k.openAI == kept && k.gemini == kept && !k.limited {
			everywhere = append(everywhere, "`"+k.name+"`")
			continue
		}
		text := strings.ReplaceAll(strings.TrimSuffix(k.reason, "."), "|", "\\|")
		fmt.Fprintf(&rest, "| `%s` | %s | %s | %s |\n", k.name, k.openAI, k.gemini, text)
	}
	return "Kept in every form: " + strings.Join(everywhere, ", ") + ".\n\n" +
		"| keyword | OpenAI | Gemini | note |\n|---|---|---|---|\n" + rest.String()
}

// TestTheDocumentHasTheTable keeps docs/tool-schemas.md and the code in agreement.
func TestTheDocumentHasTheTable(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "tool-schemas.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), tableBegin)
	had, after, ends := strings.Cut(rest, tableEnd)
	if !ok || !ends {
		t.Fatalf("%s has lost the marks around its table: %q and %q", file, tableBegin, tableEnd)
	}
	if *update {
		if err := os.WriteFile(file, []byte(before+tableBegin+keywordTable()+tableEnd+after), 0o600); err != nil {
			t.Fatal(err)
		}
		had = keywordTable()
	}
	if diff := cmp.Diff(had, keywordTable()); diff != "" {
		t.Errorf("%s differs from the code (-document +code); run go test ./registry/adapter -update:\n%s", file, diff)
	}
}

// TestTheDocumentsExample generates the document's forms from its schema.
func TestTheDocumentsExample(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "tool-schemas.md"))
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for i, part := range strings.Split(string(text), "```") {
		if i%2 == 1 {
			blocks = append(blocks, strings.TrimPrefix(part, "json\n"))
		}
	}
	if len(blocks) != 3 {
		t.Fatalf("the document has %d blocks of code, want the schema and two forms", len(blocks))
	}
	openAI, err := adapter.OpenAIParameters([]byte(blocks[0]))
	if err != nil {
		t.Fatal(err)
	}
	gemini, err := adapter.GeminiParameters([]byte(blocks[0]))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(blocks[1:], []string{string(openAI) + "\n", string(gemini) + "\n"}); diff != "" {
		t.Errorf("the document's forms differ from the code's (-document +code):\n%s", diff)
	}
}

// TestTheTableIsWhole: each keyword has one row, with a reason.
func TestTheTableIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range keywords {
		if seen[k.name] {
			t.Errorf("%s is there twice", k.name)
		}
		seen[k.name] = true
		if k.reason == "" {
			t.Errorf("%s has no reason", k.name)
		}
	}
}
