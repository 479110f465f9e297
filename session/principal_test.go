package session

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/auth"
	"voicegw/internal/meter"
	"voicegw/internal/user"
	"voicegw/orchestrator"
	"voicegw/orchestrator/calls"
	"voicegw/protocol"
	"voicegw/session/handoff"
	"voicegw/store"
)

// The principals of these tests.
var (
	tokenOfAda = auth.Principal{Kind: auth.KindJWT, ID: "jwt:x:ada", User: user.Must("ada"), Scopes: auth.ScopeVoice}
	tokenOfEve = auth.Principal{Kind: auth.KindJWT, ID: "jwt:x:eve", User: user.Must("eve"), Scopes: auth.ScopeVoice}
	keyOfAda   = auth.Principal{Kind: auth.KindKey, ID: "key:aaaaaaaa", User: user.Must("ada"), Scopes: auth.ScopeVoice}
	plainKey   = auth.Principal{Kind: auth.KindKey, ID: "key:bbbbbbbb", Scopes: auth.ScopeVoice}
	otherKey   = auth.Principal{Kind: auth.KindKey, ID: "key:cccccccc", Scopes: auth.ScopeVoice}
	serverKey  = auth.Principal{Kind: auth.KindKey, ID: "key:dddddddd", Scopes: auth.ScopeVoice | auth.ScopeTickets}
	operator   = auth.Principal{Kind: auth.KindOperator, ID: "operator", Scopes: auth.AllScopes}
	aConsole   = auth.Principal{Kind: auth.KindConsole, ID: "console", Scopes: auth.AllScopes}
	local      = auth.Principal{Kind: auth.KindLocal, ID: "local", Scopes: auth.ScopeVoice | auth.ScopeChat}
)

// TestCredentialsNameTheUser: the credentials determine the user, regardless of client.id; only principals that may
// name others can set it.
func TestCredentialsNameTheUser(t *testing.T) {
	for name, tc := range map[string]struct {
		p             auth.Principal
		named, called string // the user with and without client.id
		vouched       bool
	}{
		"a token":    {tokenOfEve, "eve", "eve", true},
		"a key":      {keyOfAda, "ada", "ada", true},
		"a bare key": {plainKey, "key:bbbbbbbb", "key:bbbbbbbb", true},
		"a server":   {serverKey, "bob", "", false},
		"operators":  {operator, "bob", "", false},
		"local":      {local, "bob", "", false},
		"anonymous":  {auth.Principal{}, "bob", "", false},
	} {
		for _, id := range []string{"bob", ""} {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, hearing, nil)
				c := st.enter(startWith(fmt.Sprintf(`,"client":{"id":%q}`, id)), func(a *Admission) { a.Principal, a.Anonymous = tc.p, user.Anonymous(someone, true) })
				synctest.Wait()
				c.last(t, "session.started")
				want := tc.named
				if id == "" {
					if want = tc.called; want == "" {
						want = someone.String()
					}
				}
				got := st.m.Sessions()
				if len(got) != 1 || got[0].User != want || got[0].Principal != tc.p {
					t.Errorf("%s, named %q: %+v, want %s", name, id, got, want)
				}
				if s := st.m.roster.sessions[got[0].ID]; s.vouched != tc.vouched {
					t.Errorf("%s: vouched %t", name, s.vouched)
				}
				c.say(`{"type":"session.end"}`)
				synctest.Wait()
			})
		}
	}
}

// TestTicketIsNeeded: a client whose credentials do not permit sessions needs a ticket.
func TestTicketIsNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, hearing, nil)
		c := st.enter(startWith(""), func(a *Admission) { a.TicketNeeded = true })
		synctest.Wait()
		c.expect(t, "error ticket_missing")
		c.ended(t, protocol.CloseTicket)
	})
}

// TestResumeByAnotherPrincipal: a session's valid token with the credentials of another principal does not resume the
// session, on this node or after a takeover, and the error reveals nothing.
func TestResumeByAnotherPrincipal(t *testing.T) {
	none := auth.Principal{}
	ticket := auth.Principal{Kind: auth.KindTicket, ID: serverKey.ID, User: user.Must("ada"), Scopes: auth.ScopeVoice}
	for name, tc := range map[string]struct {
		began, visitor auth.Principal
		ok             bool
	}{
		"a token again":                         {tokenOfAda, tokenOfAda, true},
		"a token, renewed with fewer scopes":    {tokenOfAda, auth.Principal{Kind: auth.KindJWT, ID: tokenOfAda.ID, User: tokenOfAda.User}, true},
		"a token, another's":                    {tokenOfAda, tokenOfEve, false},
		"a token, a key of the same user":       {tokenOfAda, keyOfAda, false},
		"a token, nothing":                      {tokenOfAda, none, false},
		"a token, an operator":                  {tokenOfAda, operator, false},
		"a token, without authentication":       {tokenOfAda, local, false},
		"a key again":                           {plainKey, plainKey, true},
		"a key, another":                        {plainKey, otherKey, false},
		"a key, a server's":                     {plainKey, serverKey, false},
		"a server's again":                      {serverKey, serverKey, true},
		"a ticket, nothing":                     {ticket, none, true},
		"a ticket, its user's token":            {ticket, tokenOfAda, true},
		"a ticket, another's token":             {ticket, tokenOfEve, false},
		"a ticket, a bare key":                  {ticket, plainKey, false},
		"a ticket, a server":                    {ticket, serverKey, true},
		"a ticket, a console":                   {ticket, aConsole, true},
		"a console again":                       {aConsole, aConsole, true},
		"a console with an expired token":       {aConsole, none, true},
		"a console, a user's token":             {aConsole, tokenOfAda, false},
		"local again":                           {local, local, true},
		"local, with authentication":            {local, none, true},
		"local, a user's token":                 {local, tokenOfEve, false},
		"a record without a principal":          {none, none, true},
		"without a principal, the user's token": {none, tokenOfAda, true},
		"without a principal, another's token":  {none, tokenOfEve, false},
	} {
		const token = "the right token"
		hash := sha256.Sum256([]byte(token))
		r := store.SessionRecord{
			ID: "voice-1", User: "ada", TokenHashes: []string{hex.EncodeToString(hash[:])}, InputRate: 16000, OutputRate: 24000,
			Principal: tc.began.ID, Entry: string(tc.began.Kind),
		}
		start := &protocol.Start{InputRate: 16000, OutputRate: 24000, Resume: &protocol.Resume{SessionID: "voice-1", Token: token}}
		if err := (Visitor{Start: start, Principal: tc.visitor}).Opens(r); (err == nil) != tc.ok || err != nil && !errors.Is(err, ErrNoSession) {
			t.Errorf("%s, on another node: %v", name, err)
		}
		if tc.began.Kind == auth.KindTicket {
			continue // tested in TestTicketSaysWhoComes: a session of a ticket has this principal
		}
		synctest.Test(t, func(t *testing.T) {
			st := newStage(t, hearing, func(o *Options) { o.Policy = orchestrator.Policy{ResumeGrace: 30 * time.Second} })
			client := `,"client":{"id":"ada"}`
			c := st.enter(startWith(client), func(a *Admission) { a.Principal = tc.began })
			synctest.Wait()
			began := c.last(t, "session.started")
			back := st.enter(startWith(fmt.Sprintf(`,"resume":{"session_id":%q,"token":%q,"last_seq":0}`, began["session_id"], began["resume_token"])), func(a *Admission) { a.Principal = tc.visitor })
			synctest.Wait()
			if tc.ok {
				if back.last(t, "session.started")["resumed"] != true {
					t.Errorf("%s: it is a new session", name)
				}
			} else {
				back.expect(t, "error resume_refused")
				back.ended(t, protocol.CloseTicket)
			}
			if n := len(st.m.Sessions()); n != 1 {
				t.Errorf("%s: %d sessions", name, n)
			}
		})
	}
}

// TestOthersQuestions: a principal bound to a user answers only the questions to that user.
func TestOthersQuestions(t *testing.T) {
	onStage(t, nil, func(t *testing.T, tl *till) {
		c, model := tl.talk()
		asked := user.Must(tl.m.Sessions()[0].User)
		token := tl.asksToPay(c, model, "u1")
		for range 2 {
			if _, err := tl.m.Confirm(t.Context(), token, true, user.Must("eve")); !errors.Is(err, store.ErrUnknown) {
				t.Errorf("another user: %v", err)
			}
		}
		synctest.Wait()
		if got := tl.payments(); len(got) != 0 {
			t.Errorf("paid %+v", got)
		}
		if got, err := tl.m.Confirm(t.Context(), token, true, asked); err != nil || got.Outcome != calls.OutcomeApproved {
			t.Errorf("the user: %+v, %v", got, err)
		}
		synctest.Wait()
		tl.once(t)
		if _, err := tl.m.Confirm(t.Context(), "cf_guess", true, asked); !errors.Is(err, store.ErrUnknown) {
			t.Errorf("a guessed token: %v", err)
		}
	})
}

// TestWhoseUsage: a session's usage counts for its user and for the principal that admitted it.
func TestWhoseUsage(t *testing.T) {
	g := &startup{Ticket: handoff.Ticket{User: user.Must("ada")}, principal: serverKey}
	if who := g.usageOwner(); who != (meter.Who{User: "ada", Key: serverKey.ID}) {
		t.Errorf("%+v", who)
	}
}
