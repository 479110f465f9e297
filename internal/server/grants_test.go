package server

import (
	"strings"
	"testing"

	"voicegw/config"
)

// TestGrantsToNoAgent: a name that no agent can have is refused, because the grant would never apply.
func TestGrantsToNoAgent(t *testing.T) {
	for _, name := range []string{"", " default", "default\t"} {
		_, err := newGrants(config.Namespaces{Personal: config.Grant{Agents: []string{name}}})
		if err == nil || !strings.Contains(err.Error(), "kb.namespaces.personal.agents") {
			t.Errorf("an agent %q: %v", name, err)
		}
	}
}
