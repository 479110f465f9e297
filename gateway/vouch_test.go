package gateway

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"voicegw/internal/auth"
)

// TestGrantingScopes: only a caller that shows the key itself may grant scopes and vouch for the name of a user. At both
// endpoints others are refused scopes, and their names are not vouched for.
func TestGrantingScopes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, tc := range map[string]struct {
			secret  func(s *Server) string
			vouched bool
		}{
			"a browser":            {func(*Server) string { return "" }, false},
			"another key":          {func(*Server) string { return "sk-other" }, false},
			"a console, a browser": {func(s *Server) string { _, g := login(t, s, s.ConsoleCode()); return g.Token }, false},
			"a server":             {func(*Server) string { return testKey }, true},
		} {
			for path, body := range map[string]string{
				"/v1/chat":             `{"message":"Hello","user":"ada"`,
				"/v1/chat/completions": `{"messages":[{"role":"user","content":"Hello"}],"user":"ada"`,
			} {
				a := &fakeAgent{}
				s, _ := chatServer(t, a, func(o *Options) { o.Auth = operators(testKey) })
				show := func(*http.Request) {}
				if secret := tc.secret(s); secret != "" {
					show = bearer(secret)
				}
				plain := send(s, path, body+`}`, show)
				scoped := send(s, path, body+`,"scopes":["hr:read"]}`, show)
				asked := a.requests()
				if plain.Code != http.StatusOK || len(asked) == 0 || asked[0].Vouched != tc.vouched || asked[0].Scopes != nil || asked[0].User.String() != "ada" {
					t.Errorf("%s, %s: %d %+v", name, path, plain.Code, asked)
				}
				if tc.vouched {
					if scoped.Code != http.StatusOK || len(asked) != 2 || !slices.Equal(asked[1].Scopes, []string{"hr:read"}) {
						t.Errorf("%s, %s, scopes: %d %+v", name, path, scoped.Code, asked)
					}
					if w := send(s, path, body+`,"scopes":["hr read"]}`, show); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "scopes[0]") {
						t.Errorf("%s, a bad scope: %d %s", path, w.Code, w.Body)
					}
					continue
				}
				if code, _ := problemOf(t, scoped); scoped.Code != http.StatusForbidden || code != "scopes_not_allowed" || len(asked) != 1 {
					t.Errorf("%s, %s, scopes: %d %s, %d turns", name, path, scoped.Code, code, len(asked))
				}
			}
		}
		// Without a name a key vouches for no user.
		a := &fakeAgent{}
		s, _ := chatServer(t, a, func(o *Options) { o.Auth = operators(testKey) })
		if send(s, "/v1/chat", `{"message":"Hello"}`, bearer(testKey)); a.requests()[0].Vouched {
			t.Error("a user without a name is vouched for")
		}
	})
}

func TestSessionScopes(t *testing.T) {
	d := &desk{}
	s := deskServer(t, d, nil)
	if w := operate(s, "POST", "/v1/sessions", `{"user":"ada","scopes":["hr"]}`, nil); w.Code != http.StatusCreated || !d.asked[0].Vouched || !slices.Equal(d.asked[0].Scopes, []string{"hr"}) {
		t.Errorf("%d %s: %+v", w.Code, w.Body, d.asked)
	}
	// A console's token may make a session, for a user without a guarantor.
	_, console := login(t, s, s.ConsoleCode())
	if w := send(s, "/v1/sessions", `{"user":"ada"}`, bearer(console.Token)); w.Code != http.StatusCreated || len(d.asked) != 2 || d.asked[1].Vouched {
		t.Errorf("a console: %d %s: %+v", w.Code, w.Body, d.asked)
	}
	refused := send(s, "/v1/sessions", `{"user":"ada","scopes":["hr"]}`, bearer(console.Token))
	if code, _ := problemOf(t, refused); refused.Code != http.StatusForbidden || code != "scopes_not_allowed" || len(d.asked) != 2 {
		t.Errorf("a console with scopes: %d %s: %+v", refused.Code, refused.Body, d.asked)
	}
	many := `"a"` + strings.Repeat(`,"a"`, 32)
	for _, scopes := range []string{`""`, `"a b"`, `"` + strings.Repeat("a", 65) + `"`, `"*"`, many} {
		if w := operate(s, "POST", "/v1/sessions", `{"user":"ada","scopes":[`+scopes+`]}`, nil); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "scopes") {
			t.Errorf("%.40s: %d %s", scopes, w.Code, w.Body)
		}
	}
}

// TestCredentialsGrant: the tool scopes of credentials apply at every endpoint, in addition to those that a server names,
// and only to their owner.
func TestCredentialsGrant(t *testing.T) {
	key := auth.NewAPIKey()
	in, err := auth.New(auth.Options{OperatorKey: testKey,
		Keys: []auth.Key{{ID: key.ID(), Name: "k", Hash: key.Hash(), Scopes: auth.ScopeChat | auth.ScopeTickets | auth.ScopeVoice, Grants: []string{"kb:staff"}}},
		Issuers: []auth.Issuer{{Name: "tests", Issuer: "tests", Audience: []string{"voicegw"}, Secret: tokenSecret, ScopesClaim: "scope",
			Scopes: auth.ScopeChat | auth.ScopeVoice, Grants: []string{"kb:hr"}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.Close)
	for name, tc := range map[string]struct{ secret, scopes, want string }{
		"a key":                 {key.Reveal(), "", "kb:staff"},
		"a key that names more": {key.Reveal(), `,"scopes":["hr:read","kb:staff"]`, "hr:read kb:staff"},
		"a token":               {tokenFor("ada", "chat voice kb:hr kb:board", nil), "", "kb:hr"},
		"a token without":       {tokenFor("ada", "chat voice", nil), "", ""},
		"operators":             {testKey, "", ""},
	} {
		a, d := &fakeAgent{}, &desk{}
		s, _ := chatServer(t, a, func(o *Options) { o.Auth, o.Voice = auth.Only(in), d })
		for path, body := range map[string]string{
			"/v1/chat": `{"message":"Hello"`, "/v1/chat/completions": `{"messages":[{"role":"user","content":"Hello"}]`, "/v1/sessions": `{"user":"ada"`,
		} {
			if w := send(s, path, body+tc.scopes+"}", bearer(tc.secret)); w.Code/100 != 2 {
				t.Errorf("%s, %s: %d %s", name, path, w.Code, w.Body)
			}
		}
		var got []string
		for _, r := range a.requests() {
			got = append(got, strings.Join(r.Scopes, " "))
		}
		for _, in := range d.asked {
			got = append(got, strings.Join(in.Scopes, " "))
			if by := in.Guarantor; by.ID == "" || strings.HasPrefix(name, "a ") && by.Mark == "" || strings.HasPrefix(name, "a token") == by.Expires.IsZero() {
				t.Errorf("%s has made a ticket as %+v", name, by)
			}
		}
		if len(got) != 3 || slices.ContainsFunc(got, func(scopes string) bool { return scopes != tc.want }) {
			t.Errorf("%s: granted %q, want %q", name, got, tc.want)
		}
	}
}
