package audit

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"voicegw/registry"
)

// TestFieldsAreExplained: docs/audit.md has a line for every key of a record, in their order, and names every value of an
// enumeration.
func TestFieldsAreExplained(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "audit.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "## Fields")
	section, _, _ = strings.Cut(section, "\n##")
	if !ok {
		t.Fatal("docs/audit.md has no section \"Fields\"")
	}
	var told []string
	for _, row := range regexp.MustCompile("(?m)^- `([A-Za-z]+)`(?: \\(`.+`\\))?(?:: .+)?$").FindAllStringSubmatch(section, -1) {
		told = append(told, row[1])
	}
	var keys, always []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Record]()) {
		key, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "-" || f.Anonymous {
			continue
		}
		if keys = append(keys, key); rest == "" {
			always = append(always, key)
		}
	}
	if !slices.Equal(told, keys) {
		t.Errorf("docs/audit.md explains\n%v, a record has\n%v", told, keys)
	}
	first, _, _ := strings.Cut(section, " are in every line")
	for _, key := range always {
		if !strings.Contains(first, "`"+key+"`") {
			t.Errorf("docs/audit.md: %s is not listed for every line", key)
		}
	}
	words := []string{string(EventTool), string(EventConfirmation), string(EventIntent), string(EventDamage), string(ArgumentsNone), string(ArgumentsRedacted), string(ArgumentsFull)}
	for _, t := range registry.ErrorTypes() {
		words = append(words, string(t))
	}
	for _, word := range words {
		if !strings.Contains(string(page), "`"+word+"`") {
			t.Errorf("docs/audit.md does not name %s", word)
		}
	}
}
