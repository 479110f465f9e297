package protocol

import (
	"os"
	"strings"
	"testing"
)

// TestPagesListEveryMessage: docs/protocol.md lists the messages of both sides, and docs/chat.md those that only a text
// stream has.
func TestPagesListEveryMessage(t *testing.T) {
	var pages string
	for _, name := range []string{"protocol.md", "chat.md"} {
		text, err := os.ReadFile("../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		pages += string(text)
	}
	for name := range clientTypes {
		if !strings.Contains(pages, "| `"+name+"` |") {
			t.Errorf("docs/protocol.md has no row for the client's %s", name)
		}
	}
	for name := range serverTypes {
		if !strings.Contains(pages, "`"+name+"`") {
			t.Errorf("neither docs/protocol.md nor docs/chat.md explains %s", name)
		}
	}
}
