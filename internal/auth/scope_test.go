package auth

import (
	"strings"
	"testing"
)

// TestScopesHaveNames: each scope has one name, and is found by it.
func TestScopesHaveNames(t *testing.T) {
	all := AllScopes.Names()
	if len(all) != len(inOrder) {
		t.Fatalf("%v, want %v", all, inOrder)
	}
	for _, name := range all {
		one, _, err := ParseAccess([]string{name})
		if err != nil || one.String() != name {
			t.Errorf("%s is parsed as %q, %v", name, one, err)
		}
	}
	if set, _, err := ParseAccess([]string{"chat", "voice", "chat"}); err != nil || set != ScopeVoice|ScopeChat || set.String() != "voice chat" {
		t.Errorf("%q, %v", set, err)
	}
	for _, wrong := range []string{"", "Voice", "voices", "*", "admin " + strings.Repeat("x", 99)} {
		if set, _, err := ParseAccess([]string{"voice", wrong}); err == nil || set != 0 || !strings.Contains(err.Error(), "metrics") || len(err.Error()) > 200 {
			t.Errorf("%.20q: %q, %v", wrong, set, err)
		}
	}
}
