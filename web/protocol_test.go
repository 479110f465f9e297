package web

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"voicegw/protocol"
)

// TestMessageTypes compares the table of client/src/protocol/codec.ts, the gateway's messages and the list in
// docs/protocol.md.
func TestMessageTypes(t *testing.T) {
	source := read(t, "client/src/protocol/codec.ts")
	_, table, found := strings.Cut(source, "const REQUIRED")
	table, _, ended := strings.Cut(table, "\n};")
	if !found || !ended {
		t.Fatal("client/src/protocol/codec.ts has no table REQUIRED")
	}
	var library []string
	for _, m := range regexp.MustCompile(`(?m)^  "?([a-z.]+)"?: \{`).FindAllStringSubmatch(table, -1) {
		library = append(library, m[1])
	}
	for _, name := range library {
		m, err := protocol.ParseServer(fmt.Appendf(nil, `{"type":%q,"seq":1}`, name))
		_, unknown := m.(*protocol.Unknown)
		if err != nil || unknown {
			t.Errorf("the library knows %s; the gateway: %T, %v", name, m, err)
		}
	}
	_, docs, _ := strings.Cut(read(t, "../docs/protocol.md"), "\n## From the gateway\n")
	docs, _, _ = strings.Cut(docs, "\n## ")
	rows := regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|").FindAllStringSubmatch(docs, -1)
	if len(rows) < 15 {
		t.Fatalf("docs/protocol.md lists %d rows of messages", len(rows))
	}
	for _, row := range rows {
		for _, name := range regexp.MustCompile("[a-z.]+").FindAllString(row[1], -1) {
			if !slices.Contains(library, name) {
				t.Errorf("docs/protocol.md lists %s, which is unknown to the library", name)
			}
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
