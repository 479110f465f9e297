package auth

import (
	"context"
	"strings"
	"testing"

	"voicegw/internal/user"
)

// TestScopesHaveNames: each scope has one name, by which it is found again.
func TestScopesHaveNames(t *testing.T) {
	all := AllScopes.Names()
	if len(all) != len(scopeNames) {
		t.Fatalf("%v, want %v", all, scopeNames)
	}
	for _, name := range all {
		one, err := ParseScopes([]string{name})
		if err != nil || one.String() != name {
			t.Errorf("%s is parsed as %q, %v", name, one, err)
		}
	}
	if set, err := ParseScopes([]string{"chat", "voice", "chat"}); err != nil || set != Voice|Chat || set.String() != "voice chat" {
		t.Errorf("%q, %v", set, err)
	}
	for _, wrong := range []string{"", "Voice", "voices", "*", "admin " + strings.Repeat("x", 99)} {
		if set, err := ParseScopes([]string{"voice", wrong}); err == nil || set != 0 || !strings.Contains(err.Error(), "metrics") || len(err.Error()) > 200 {
			t.Errorf("%.20q: %q, %v", wrong, set, err)
		}
	}
}

// TestWhatAPrincipalMay: admin has every scope; who is bound to a user names no other.
func TestWhatAPrincipalMay(t *testing.T) {
	ada := user.Must("ada")
	for name, tc := range map[string]struct {
		p            Principal
		voice, names bool
	}{
		"nobody":            {Principal{}, false, false},
		"voice":             {Principal{Scopes: Voice}, true, false},
		"another scope":     {Principal{Scopes: AllScopes &^ (Voice | Admin | Tickets)}, false, false},
		"a server":          {Principal{Scopes: Tickets}, false, true},
		"admin":             {Principal{Scopes: Admin}, true, true},
		"a user":            {Principal{Scopes: Tickets | Voice, User: ada}, true, false},
		"a user with admin": {Principal{Scopes: Admin, User: ada}, true, false},
	} {
		if tc.p.May(Voice) != tc.voice || tc.p.May(Voice|Metrics) != (tc.voice || tc.p.Scopes&Metrics != 0) || tc.p.Names() != tc.names {
			t.Errorf("%s: %+v", name, tc.p)
		}
		if tc.p.IsZero() != (name == "nobody") {
			t.Errorf("%s is nobody: %v", name, tc.p.IsZero())
		}
	}
}

// TestTheContextHasThePrincipal: the nearest one, or nobody.
func TestTheContextHasThePrincipal(t *testing.T) {
	p := Principal{Kind: KindKey, ID: "key:abc", Scopes: Voice}
	ctx := With(context.Background(), p)
	if From(ctx) != p || From(With(ctx, Principal{})) != (Principal{}) || From(context.Background()) != (Principal{}) {
		t.Errorf("%+v", From(ctx))
	}
}
