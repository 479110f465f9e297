package chat

import (
	"context"
	"slices"
	"testing"

	"voicegw/registry"
)

// TestToolsKnowWhoVouches: a turn's tools learn whether its user is vouched for and its scopes, and the
// conversation's next turn does not keep them.
func TestToolsKnowWhoVouches(t *testing.T) {
	bubble(t, fixtureSetting{}, func(t *testing.T, f *fixture) {
		var seen []registry.Session
		f.do = func(_ context.Context, c toolCall) (registry.Result, error) {
			seen = append(seen, c.Session)
			return registry.Result{Data: "done"}, nil
		}
		for _, req := range []Request{{Message: "One", ConversationID: "conv", Vouched: true, Scopes: []string{"hr"}}, {Message: "Two", ConversationID: "conv"}} {
			if _, err := f.respond(t.Context(), req, callsTools(nth(1), "look", `{}`), says("Done.")); err != nil {
				t.Fatal(err)
			}
		}
		if len(seen) != 2 || !seen[0].Vouched || !slices.Equal(seen[0].Scopes, []string{"hr"}) || seen[1].Vouched || seen[1].Scopes != nil {
			t.Errorf("%+v", seen)
		}
	})
}
