package auth

import (
	"context"
	"testing"

	"voicegw/internal/user"
)

// TestPrincipalRights: admin has every scope; a principal that is bound to a user names no other.
func TestPrincipalRights(t *testing.T) {
	ada := user.Must("ada")
	for name, tc := range map[string]struct {
		p            Principal
		voice, names bool
	}{
		"none":              {Principal{}, false, false},
		"voice":             {Principal{Scopes: ScopeVoice}, true, false},
		"another scope":     {Principal{Scopes: AllScopes &^ (ScopeVoice | ScopeAdmin | ScopeTickets)}, false, false},
		"a server":          {Principal{Scopes: ScopeTickets}, false, true},
		"admin":             {Principal{Scopes: ScopeAdmin}, true, true},
		"a user":            {Principal{Scopes: ScopeTickets | ScopeVoice, User: ada}, true, false},
		"a user with admin": {Principal{Scopes: ScopeAdmin, User: ada}, true, false},
	} {
		if tc.p.May(ScopeVoice) != tc.voice || tc.p.May(ScopeVoice|ScopeMetrics) != (tc.voice || tc.p.Scopes&ScopeMetrics != 0) || tc.p.Names() != tc.names {
			t.Errorf("%s: %+v", name, tc.p)
		}
		if tc.p.IsZero() != (name == "none") {
			t.Errorf("%s is not a principal: %v", name, tc.p.IsZero())
		}
	}
}

// TestPrincipalInContext: the nearest principal counts, or none.
func TestPrincipalInContext(t *testing.T) {
	p := Principal{Kind: KindKey, ID: "key:abc", Scopes: ScopeVoice}
	ctx := With(context.Background(), p)
	if From(ctx) != p || From(With(ctx, Principal{})) != (Principal{}) || From(context.Background()) != (Principal{}) {
		t.Errorf("%+v", From(ctx))
	}
}
