package session

import (
	"slices"
	"testing"
	"testing/synctest"
)

// TestOnlyATicketVouches: tools learn only from a ticket that the user is vouched for, and the scopes; a client's own
// fields grant nothing.
func TestOnlyATicketVouches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		desk := &counter{ticket: ticketed}
		tl := newTill(t, desk.give)
		for name, ticket := range map[string]string{"a ticket": secret, "its own word": ""} {
			c := tl.visit(startWith(`,"client":{"id":"ada"}`), ticket, "")
			model := tl.fake.Accept(t)
			synctest.Wait()
			tl.calls(model, "i1", "search", `{}`)
			seen := tl.session()
			want := ticket != ""
			if seen.UserID != "ada" || seen.Vouched != want || slices.Equal(seen.Scopes, []string{"hr"}) != want {
				t.Errorf("%s: %+v", name, seen)
			}
			c.say(`{"type":"session.end"}`)
			synctest.Wait()
		}
	})
}
