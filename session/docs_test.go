package session

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestProtocolPageListsEveryCause: docs/protocol.md and the table of causes say
// the same.
func TestProtocolPageListsEveryCause(t *testing.T) {
	page, err := os.ReadFile("../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range causes() {
		row := fmt.Sprintf("| %d | `%s` |", c.Close, c.Reason)
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/protocol.md has no row %q", row)
		}
		if c.Code != "" && !strings.Contains(string(page), "`"+c.Code+"`") {
			t.Errorf("docs/protocol.md does not explain the code %s", c.Code)
		}
		if c.Code != "" && c.Message == "" {
			t.Errorf("the cause %s has a code but no words", c.Reason)
		}
	}
}
