package session

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/auth"
	"voicegw/internal/user"
	"voicegw/orchestrator"
	"voicegw/registry"
)

// enforced are Credentials that admit everyone except one, with the expiry of the given principal.
type enforced struct{ gone string }

func (e enforced) Admits(p auth.Principal, _ time.Time) bool { return p.ID != e.gone || e.gone == "" }
func (enforced) Lapses(p auth.Principal) time.Time           { return p.Expires }

// tokenUntil returns a token of ada that expires after d.
func tokenUntil(d time.Duration) auth.Principal {
	p := tokenOfAda
	p.Mark, p.Expires = "0102030405060708", time.Now().UTC().Add(d)
	return p
}

// resumes returns a session.start that resumes a session.
func resumes(started map[string]any) string {
	return startWith(fmt.Sprintf(`,"resume":{"session_id":%q,"token":%q,"last_seq":0}`, started["session_id"], started["resume_token"]))
}

// TestSessionsEndWithTheirCredentials: a session ends when its client's token expires. It announces this at its start
// and a minute before. It continues if the client resumed with a newer token.
func TestSessionsEndWithTheirCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, func(o *Options) {
			o.Credentials, o.Policy = enforced{}, orchestrator.Policy{ResumeGrace: 30 * time.Second, MaxLength: time.Hour}
		})
		p := tokenUntil(3 * time.Minute)
		c := st.enter(startWith(""), func(a *Admission) { a.Principal = p })
		synctest.Wait()
		began := c.last(t, "session.started")
		if end, err := time.Parse(time.RFC3339, began["expires_at"].(string)); err != nil || !end.Equal(p.Expires.Truncate(time.Millisecond)) {
			t.Errorf("it expires at %v, %v", began["expires_at"], err)
		}
		pass(2*time.Minute + time.Second)
		synctest.Wait()
		c.expect(t, "session.ending credentials_expired")
		newer := tokenUntil(5 * time.Minute)
		back := st.enter(resumes(began), func(a *Admission) { a.Principal = newer })
		synctest.Wait()
		again := back.last(t, "session.started")
		pass(2 * time.Minute)
		synctest.Wait()
		if back.isOver() {
			t.Fatal("the newer token does not count")
		}
		if again["expires_at"] == began["expires_at"] {
			t.Errorf("it still expires at %v", again["expires_at"])
		}
		pass(3 * time.Minute)
		synctest.Wait()
		back.expect(t, "session.ended credentials_expired")
		if back.code != 4501 {
			t.Errorf("closed with %d", back.code)
		}
	})
}

// TestCredentialsAfterTakeover: the node that continues a session knows the expiry of its client's token, and refuses a
// client whose access was revoked.
func TestCredentialsAfterTakeover(t *testing.T) {
	for name, tc := range map[string]struct {
		gone    string
		mark    string        // of the credentials shown to the other node
		renewed time.Duration // remaining time of these credentials
		want    string
	}{
		"the same token":      {"", "0102030405060708", 100 * time.Second, "session.ended credentials_expired"},
		"a newer one":         {"", "0102030405060708", time.Hour, ""},
		"of a revoked issuer": {tokenOfAda.ID, "0102030405060708", time.Hour, "error resume_refused"},
		"of another issuer":   {"", "ffffffffffffffff", time.Hour, "error resume_refused"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newShelf()
				a := f.stage(t, "a", remembering, func(o *Options) { o.Credentials = enforced{} })
				c := a.enter(startText, func(a *Admission) { a.Principal = tokenUntil(2 * time.Minute) })
				synctest.Wait()
				began := c.last(t, "session.started")
				f.kill("a")
				b := f.stage(t, "b", remembering, func(o *Options) { o.Credentials = enforced{tc.gone} })
				back := b.enter(resumes(began), func(a *Admission) {
					a.Principal = tokenUntil(tc.renewed)
					a.Principal.Mark = tc.mark
				})
				synctest.Wait()
				pass(110 * time.Second)
				synctest.Wait()
				if tc.want == "" {
					if back.isOver() {
						t.Error("the session ended")
					}
					return
				}
				back.expect(t, tc.want)
			})
		})
	}
}

// TestTicketOfRevokedPrincipal: a ticket is valid only while its creator is admitted, and its session ends with the
// token that requested it.
func TestTicketOfRevokedPrincipal(t *testing.T) {
	for name, gone := range map[string]string{"let in": "", "gone": "jwt:x:ada"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				made := ticketed
				made.Guarantor = registry.Guarantor{ID: "jwt:x:ada", Mark: "01", Expires: time.Now().Add(time.Minute)}
				desk := &counter{ticket: made}
				st := newStage(t, hearing, func(o *Options) {
					desk.give(o)
					o.Credentials = enforced{gone}
				})
				c := st.visit(startWith(`,"ticket":"`+secret+`"`), "", "")
				synctest.Wait()
				if gone != "" {
					c.expect(t, "error ticket_wrong")
					return
				}
				c.last(t, "session.started")
				pass(time.Minute)
				synctest.Wait()
				c.expect(t, "session.ended credentials_expired")
			})
		})
	}
}

// TestTokenGrants: tools can read the grants of the session's token.
func TestTokenGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		p := tokenOfAda
		p.Grants = "kb:staff kb:hr"
		c := st.enter(startWith(""), func(a *Admission) { a.Principal, a.Anonymous = p, user.Anonymous(someone, true) })
		synctest.Wait()
		began := c.last(t, "session.started")
		if got := st.m.roster.sessions[began["session_id"].(string)].scopes; fmt.Sprint(got) != "[kb:staff kb:hr]" {
			t.Errorf("granted are %q", got)
		}
	})
}
