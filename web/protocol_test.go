package web

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"voicegw/session/wsclient"
)

// planned are messages that the page knows and this gateway does not send yet.
var planned = []string{"provider.reconnecting", "provider.reconnected", "session.moving"}

// unread are messages that the page has no use for.
var unread = []string{"pong"}

// TestThePageAndTheGatewayKnowTheSameMessages: the table of page/protocol.ts, what the
// gateway can say, and what docs/protocol.md lists.
func TestThePageAndTheGatewayKnowTheSameMessages(t *testing.T) {
	source := read(t, "page/protocol.ts")
	_, table, found := strings.Cut(source, "const REQUIRED")
	table, _, ended := strings.Cut(table, "\n};")
	if !found || !ended {
		t.Fatal("page/protocol.ts has no table REQUIRED")
	}
	var page []string
	for _, m := range regexp.MustCompile(`(?m)^  "?([a-z.]+)"?: \{`).FindAllStringSubmatch(table, -1) {
		page = append(page, m[1])
	}
	for _, name := range page {
		m, err := wsclient.ParseServer(fmt.Appendf(nil, `{"type":%q,"seq":1}`, name))
		_, unknown := m.(*wsclient.Unknown)
		if err != nil || unknown != slices.Contains(planned, name) {
			t.Errorf("the page knows %s; the gateway: %T, %v", name, m, err)
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
			if !slices.Contains(page, name) && !slices.Contains(unread, name) {
				t.Errorf("docs/protocol.md lists %s, which the page does not know", name)
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
