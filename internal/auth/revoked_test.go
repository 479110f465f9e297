package auth

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"voicegw/internal/user"
)

// derived returns all derived access of a principal: a session of its own, a ticket, a console, and a ticket made by the
// console.
func derived(by Principal) map[string]Principal {
	console := ConsoleOf(by)
	ticket := func(of Principal) Principal {
		return Principal{Kind: KindTicket, ID: of.ID, Mark: of.Mark, Expires: of.Expires, User: user.Must("bob"), Scopes: ScopeVoice}
	}
	return map[string]Principal{"itself": by, "a ticket": ticket(by), "a console": console, "a console's ticket": ticket(console)}
}

// TestDerivedAccessEnds: access derived from credentials ends with them, however they end; other credentials, or an
// additional key of an issuer, do not end it.
func TestDerivedAccessEnds(t *testing.T) {
	key, first, next := NewAPIKey(), newSigner(t, "1", "EdDSA"), newSigner(t, "2", "EdDSA")
	secret := []byte("0123456789abcdef0123456789abcdef")
	issuer := func(change func(*Issuer)) []Issuer {
		i := theIssuer(first.jwk())
		i.Scopes |= ScopeAdmin
		if change != nil {
			change(&i)
		}
		return []Issuer{i}
	}
	bySecret := func(secret []byte) []Issuer {
		return issuer(func(i *Issuer) { i.KeySet, i.Secret = nil, secret })
	}
	admin := func(change func(*Key)) []Key {
		return []Key{keyOf(key, func(k *Key) {
			k.Scopes = ScopeAdmin
			if change != nil {
				change(k)
			}
		})}
	}
	tokenOf := func(s signer) string { return s.token(t, valid(map[string]any{"scope": "admin voice"})) }
	signed := func(secret []byte) string {
		return token(t, jwt.SigningMethodHS256, secret, nil, valid(map[string]any{"scope": "admin voice"}))
	}
	all := []string{"itself", "a ticket", "a console", "a console's ticket"}
	for name, tc := range map[string]struct {
		before, after Options
		shows         string
		ends          []string
	}{
		"the operators' key remains":    {Options{OperatorKey: "0123456789abcdef"}, Options{OperatorKey: "0123456789abcdef", Keys: admin(nil)}, "0123456789abcdef", nil},
		"the operators' key changes":    {Options{OperatorKey: "0123456789abcdef"}, Options{OperatorKey: "fedcba9876543210"}, "0123456789abcdef", all},
		"the operators' key is removed": {Options{OperatorKey: "0123456789abcdef"}, Options{Keys: admin(nil)}, "0123456789abcdef", all},
		"an admin's key remains":        {Options{Keys: admin(nil), OperatorKey: "0123456789abcdef"}, Options{Keys: admin(nil), OperatorKey: "fedcba9876543210"}, key.Reveal(), nil},
		"an admin's key is removed":     {Options{Keys: admin(nil)}, Options{OperatorKey: "0123456789abcdef"}, key.Reveal(), all},
		"an admin's key changes":        {Options{Keys: admin(nil)}, Options{Keys: admin(func(k *Key) { k.Hash = NewAPIKey().Hash() })}, key.Reveal(), all},
		"an admin's key has expired":    {Options{Keys: admin(nil)}, Options{Keys: admin(func(k *Key) { k.Expires = time.Now().Add(-time.Second) })}, key.Reveal(), all},
		"an admin is one no more":       {Options{Keys: admin(nil)}, Options{Keys: admin(func(k *Key) { k.Scopes = ScopeVoice | ScopeTickets })}, key.Reveal(), []string{"a console", "a console's ticket"}},
		"an admin may only see":         {Options{Keys: admin(nil)}, Options{Keys: admin(func(k *Key) { k.Scopes = ScopeInspect })}, key.Reveal(), all},
		"an issuer remains":             {Options{Issuers: issuer(nil)}, Options{Issuers: issuer(nil)}, tokenOf(first), nil},
		"an issuer has one more key":    {Options{Issuers: issuer(nil)}, Options{Issuers: issuer(func(i *Issuer) { i.KeySet = published(first.jwk(), next.jwk()) })}, tokenOf(first), nil},
		"an issuer has other keys":      {Options{Issuers: issuer(nil)}, Options{Issuers: issuer(func(i *Issuer) { i.KeySet = published(next.jwk()) })}, tokenOf(first), all},
		"an issuer is removed":          {Options{Issuers: issuer(nil)}, Options{Keys: admin(nil)}, tokenOf(first), all},
		"an issuer is another":          {Options{Issuers: issuer(nil)}, Options{Issuers: issuer(func(i *Issuer) { i.Issuer = "https://di.example" })}, tokenOf(first), all},
		"its users are admins no more":  {Options{Issuers: issuer(nil)}, Options{Issuers: issuer(func(i *Issuer) { i.Scopes = ScopeVoice })}, tokenOf(first), []string{"a console", "a console's ticket"}},
		"an issuer's secret remains":    {Options{Issuers: bySecret(secret)}, Options{Issuers: bySecret(secret)}, signed(secret), nil},
		"an issuer's secret changes":    {Options{Issuers: bySecret(secret)}, Options{Issuers: bySecret([]byte("another secret of 32 bytes or so"))}, signed(secret), all},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := newAuth(t, tc.before), newAuth(t, tc.after)
			by, err := before.Check(t.Context(), tc.shows)
			if err != nil {
				t.Fatal(err)
			}
			var gone []string
			for what, p := range derived(by) {
				if !before.Admits(p, time.Now()) || before.Revoked(p) {
					t.Errorf("%s is not let in before", what)
				}
				if !after.Admits(p, time.Now()) {
					gone = append(gone, what)
				}
			}
			if got, want := sorted(gone), sorted(tc.ends); got != want {
				t.Errorf("%q end, want %q", got, want)
			}
		})
	}
}

// TestWithdrawnSigner: a session ends when its issuer no longer publishes the key of its token, and continues while the
// issuer is unreachable.
func TestWithdrawnSigner(t *testing.T) {
	first, second := newSigner(t, "1", "EdDSA"), newSigner(t, "2", "EdDSA")
	synctest.Test(t, func(t *testing.T) {
		id := publishes(first, second)
		a := remote(t, id, io.Discard)
		defer a.Close()
		synctest.Wait()
		p, err := a.Check(t.Context(), first.token(t, valid(nil)))
		if err != nil || a.Revoked(p) {
			t.Fatal(err)
		}
		was := id.answers
		id.set(func() { id.answers = map[string]string{} })
		pass(2 * keysLife)
		if a.Revoked(p) {
			t.Error("it is revoked because the issuer is unreachable")
		}
		id.set(func() { id.answers = was })
		id.publish(second)
		pass(max(refreshEvery, retryEvery) + time.Second)
		if !a.Revoked(p) {
			t.Error("it is not revoked although its key was withdrawn")
		}
	})
}
