package auth

import (
	"context"
	"testing"

	"voicegw/auth/scope"
	"voicegw/internal/user"
)

// TestWhatAPrincipalMay: admin has every scope; a principal that is bound to a user names no other.
func TestWhatAPrincipalMay(t *testing.T) {
	ada := user.Must("ada")
	for name, tc := range map[string]struct {
		p            Principal
		voice, names bool
	}{
		"nobody":            {Principal{}, false, false},
		"voice":             {Principal{Scopes: scope.Voice}, true, false},
		"another scope":     {Principal{Scopes: scope.All &^ (scope.Voice | scope.Admin | scope.Tickets)}, false, false},
		"a server":          {Principal{Scopes: scope.Tickets}, false, true},
		"admin":             {Principal{Scopes: scope.Admin}, true, true},
		"a user":            {Principal{Scopes: scope.Tickets | scope.Voice, User: ada}, true, false},
		"a user with admin": {Principal{Scopes: scope.Admin, User: ada}, true, false},
	} {
		if tc.p.May(scope.Voice) != tc.voice || tc.p.May(scope.Voice|scope.Metrics) != (tc.voice || tc.p.Scopes&scope.Metrics != 0) || tc.p.Names() != tc.names {
			t.Errorf("%s: %+v", name, tc.p)
		}
		if tc.p.IsZero() != (name == "nobody") {
			t.Errorf("%s is nobody: %v", name, tc.p.IsZero())
		}
	}
}

// TestTheContextHasThePrincipal: the nearest one, or nobody.
func TestTheContextHasThePrincipal(t *testing.T) {
	p := Principal{Kind: KindKey, ID: "key:abc", Scopes: scope.Voice}
	ctx := With(context.Background(), p)
	if From(ctx) != p || From(With(ctx, Principal{})) != (Principal{}) || From(context.Background()) != (Principal{}) {
		t.Errorf("%+v", From(ctx))
	}
}
