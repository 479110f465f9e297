package session

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"voicegw/internal/user"
	"voicegw/protocol"
)

// TestNamesAreChecked: a client.id that is no name is refused at session.start, with a
// ticket too, in words that name the field; the model is never reached.
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
						t.Errorf("the client was told %v", m)
					}
					if n := len(desk.seen().asked); n != 0 {
						t.Error("the ticket was used up")
					}
				})
			})
		}
	}
}

// TestNobodyOwnsAShortID: a client without a name may go on only with a conversation whose id
// nobody guesses, unless it works on this machine.
func TestNobodyOwnsAShortID(t *testing.T) {
	for name, tc := range map[string]struct {
		who user.User
		id  string
		ok  bool
	}{
		"from elsewhere":                {user.Anonymous(someone, true), "c-7", false},
		"behind a proxy":                {user.Anonymous(someone, false), "c-7", false},
		"from elsewhere, a secret id":   {user.Anonymous(someone, true), "conv-" + strings.Repeat("x", 26), true},
		"on this machine":               {user.Anonymous(netip.MustParseAddr("::1"), true), "c-7", true},
		"this machine's proxy for them": {user.Anonymous(netip.MustParseAddr("::1"), false), "c-7", false},
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
