package session

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"voicegw/internal/user"
	"voicegw/protocol"
)

// TestNamesAreChecked: an invalid client.id is refused at session.start, also with a ticket, with an error that names
// the field; the model is not contacted.
func TestNamesAreChecked(t *testing.T) {
	for name, id := range map[string]string{
		"too long": strings.Repeat("x", user.MaxBytes+1), "control": `a\u0001b`, "invisible": `a\u200bb`, "tags": `a\udb40\udc41`,
		"bidirectional": `\u202eada`, "spaces": "  ", "an address": "192.0.2.7", "lone mark": `\u0301`,
	} {
		for _, ticket := range []string{"", `,"ticket":"` + secret + `"`} {
			t.Run(name+ticket, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					desk := &counter{ticket: ticketed}
					st := newStage(t, hearing, desk.give)
					c := st.connect(startWith(ticket + `,"client":{"id":"` + id + `"}`))
					synctest.Wait()
					c.ended(t, protocol.CloseBadProtocol)
					m := c.last(t, "error")
					if text, _ := m["message"].(string); m["code"] != "invalid_message" || m["ref"] != "client.id" || !strings.Contains(text, "client.id") {
						t.Errorf("the client got %v", m)
					}
					if n := len(desk.seen().asked); n != 0 {
						t.Error("the ticket was used up")
					}
				})
			})
		}
	}
}

// TestShortIDsAreRefused: a client without a name may continue only a conversation with an id that cannot be guessed,
// unless it is on the gateway's machine.
func TestShortIDsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		who user.User
		id  string
		ok  bool
	}{
		"from elsewhere":              {user.Anonymous(someone, true), "c-7", false},
		"behind a proxy":              {user.Anonymous(someone, false), "c-7", false},
		"from elsewhere, a secret id": {user.Anonymous(someone, true), "conv-" + strings.Repeat("x", 26), true},
		"on this machine":             {user.Anonymous(netip.MustParseAddr("::1"), true), "c-7", true},
		"a proxy on this machine":     {user.Anonymous(netip.MustParseAddr("::1"), false), "c-7", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				desk := &counter{}
				st := newStage(t, hearing, desk.give)
				a, err := st.m.Admit(someone, Coming{})
				if err != nil {
					t.Fatal(err)
				}
				a.Anonymous = tc.who
				c := newTestClient()
				c.say(startWith(`,"conversation_id":"` + tc.id + `"`))
				st.m.Start(a, c)
				if tc.ok {
					st.fake.Accept(t)
				}
				synctest.Wait()
				if entered := len(desk.seen().entered) > 0; entered != tc.ok {
					t.Errorf("entered: %t", entered)
				}
				if !tc.ok {
					c.ended(t, protocol.CloseBadProtocol)
				}
			})
		})
	}
}
