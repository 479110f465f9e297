package auth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"voicegw/internal/user"
)

// signer is a private key of an issuer.
type signer struct {
	kid, alg string
	key      crypto.Signer
}

// rsaKey is made once because it is slow.
var rsaKey = sync.OnceValue(func() crypto.Signer {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

func newSigner(t *testing.T, kid, alg string) signer {
	t.Helper()
	s := signer{kid: kid, alg: alg}
	var err error
	switch alg[:2] {
	case "RS", "PS":
		s.key = rsaKey()
	case "ES":
		s.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	default:
		_, s.key, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// jwk is the public key in the form that an issuer publishes.
func (s signer) jwk() map[string]any {
	b64 := base64.RawURLEncoding.EncodeToString
	m := map[string]any{"kid": s.kid, "alg": s.alg, "use": "sig"}
	switch pub := s.key.Public().(type) {
	case *rsa.PublicKey:
		m["kty"], m["n"], m["e"] = "RSA", b64(pub.N.Bytes()), "AQAB"
	case *ecdsa.PublicKey:
		m["kty"], m["crv"] = "EC", "P-256"
		point, err := pub.Bytes() // 4, x, y (SEC 1, section 2.3.3)
		if err != nil {
			panic(err)
		}
		m["x"], m["y"] = b64(point[1:33]), b64(point[33:])
	case ed25519.PublicKey:
		m["kty"], m["crv"], m["x"] = "OKP", "Ed25519", b64(pub)
	}
	return m
}

// published is a set of keys.
func published(keys ...map[string]any) []byte {
	text, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		panic(err)
	}
	return text
}

// token signs claims; header overrides the token's header, where a nil removes a field.
func token(t *testing.T, method jwt.SigningMethod, key any, header, claims map[string]any) string {
	t.Helper()
	made := jwt.NewWithClaims(method, jwt.MapClaims(claims))
	for name, value := range header {
		if value == nil {
			delete(made.Header, name)
		} else {
			made.Header[name] = value
		}
	}
	text, err := made.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (s signer) token(t *testing.T, claims map[string]any) string {
	t.Helper()
	return token(t, jwt.GetSigningMethod(s.alg), s.key, map[string]any{"kid": s.kid}, claims)
}

// valid are the claims of a valid token, with changes; a nil removes a claim.
func valid(changes map[string]any) map[string]any {
	now := time.Now()
	claims := map[string]any{
		"iss": "https://id.example", "aud": "voicegw", "sub": "ada", "scope": "voice openid", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	return claims
}

// theIssuer is an issuer with those public keys.
func theIssuer(keys ...map[string]any) Issuer {
	return Issuer{
		Name: "example", Issuer: "https://id.example", Audience: []string{"other", "voicegw"}, KeySet: published(keys...),
		ScopesClaim: "scope", Scopes: ScopeVoice | ScopeChat, Leeway: 30 * time.Second, Owner: "team", Limits: Limits{Sessions: 2},
	}
}

func newAuth(t *testing.T, o Options) *Authenticator {
	t.Helper()
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// refusedFor returns the reason for which a secret is refused; empty if it is accepted.
func refusedFor(a *Authenticator, secret string) string {
	_, err := a.Check(context.Background(), secret)
	var why *RefusedError
	if errors.As(err, &why) {
		return why.Reason
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// TestTokens: only a token made by the issuer for this gateway and this time is accepted.
func TestTokens(t *testing.T) {
	rs, es, ed := newSigner(t, "r", "RS256"), newSigner(t, "e", "ES256"), newSigner(t, "d", "EdDSA")
	free := rs.jwk() // it names no algorithm
	free["kid"] = "free"
	delete(free, "alg")
	a := newAuth(t, Options{Issuers: []Issuer{theIssuer(rs.jwk(), es.jwk(), ed.jwk(), free)}})
	now := time.Now()
	public, err := x509.MarshalPKIXPublicKey(rs.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	asPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	foreign := newSigner(t, "e", "ES256")
	plain := func(changes map[string]any) string { return ed.token(t, valid(changes)) }
	with := func(header map[string]any) string {
		return token(t, jwt.SigningMethodEdDSA, ed.key, header, valid(nil))
	}
	for name, tc := range map[string]struct{ token, reason string }{
		"RS256":                       {rs.token(t, valid(nil)), ""},
		"ES256":                       {es.token(t, valid(nil)), ""},
		"EdDSA":                       {plain(nil), ""},
		"for several":                 {plain(map[string]any{"aud": []string{"x", "voicegw"}}), ""},
		"the clock is late":           {plain(map[string]any{"exp": now.Add(-20 * time.Second).Unix()}), ""},
		"the clock is early":          {plain(map[string]any{"iat": now.Add(20 * time.Second).Unix(), "nbf": now.Add(20 * time.Second).Unix()}), ""},
		"expired":                     {plain(map[string]any{"exp": now.Add(-31 * time.Second).Unix()}), ReasonExpired},
		"without an end":              {plain(map[string]any{"exp": nil}), ReasonToken},
		"an end that is not a number": {plain(map[string]any{"exp": "later"}), ReasonToken},
		"not yet":                     {plain(map[string]any{"nbf": now.Add(time.Minute).Unix()}), ReasonEarly},
		"made in the future":          {plain(map[string]any{"iat": now.Add(time.Minute).Unix()}), ReasonEarly},
		"another audience":            {plain(map[string]any{"aud": "elsewhere"}), ReasonToken},
		"no audience":                 {plain(map[string]any{"aud": nil}), ReasonToken},
		"an empty audience":           {plain(map[string]any{"aud": []string{}}), ReasonToken},
		"another issuer":              {plain(map[string]any{"iss": "https://evil.example"}), ReasonIssuer},
		"no issuer":                   {plain(map[string]any{"iss": nil}), ReasonIssuer},
		"an issuer in capitals":       {plain(map[string]any{"iss": nil, "ISS": "https://id.example"}), ReasonToken},
		"no user":                     {plain(map[string]any{"sub": nil}), ReasonToken},
		"a user that is a number":     {plain(map[string]any{"sub": 7}), ReasonToken},
		"a user that is an address":   {plain(map[string]any{"sub": "192.0.2.7"}), ReasonToken},
		"a user without a name":       {plain(map[string]any{"sub": "anonymous:x"}), ReasonToken},
		"a user that is a key":        {plain(map[string]any{"sub": "key:0123abcd"}), ReasonToken},
		"an invisible user":           {plain(map[string]any{"sub": "ada\u200b"}), ReasonToken},
		"no algorithm":                {token(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, map[string]any{"kid": "r"}, valid(nil)), ReasonToken},
		"a public key as a secret":    {token(t, jwt.SigningMethodHS256, asPEM, map[string]any{"kid": "r"}, valid(nil)), ReasonToken},
		"its bytes as a secret":       {token(t, jwt.SigningMethodHS256, public, map[string]any{"kid": "r"}, valid(nil)), ReasonToken},
		"an algorithm not allowed":    {token(t, jwt.SigningMethodRS512, rs.key, map[string]any{"kid": "r"}, valid(nil)), ReasonToken},
		"a key for any of them":       {token(t, jwt.SigningMethodRS256, rs.key, map[string]any{"kid": "free"}, valid(nil)), ""},
		"one of them not allowed":     {token(t, jwt.SigningMethodPS256, rs.key, map[string]any{"kid": "free"}, valid(nil)), ReasonToken},
		"a secret with that key":      {token(t, jwt.SigningMethodHS256, asPEM, map[string]any{"kid": "free"}, valid(nil)), ReasonToken},
		"another algorithm's key":     {token(t, jwt.SigningMethodRS256, rs.key, map[string]any{"kid": "e"}, valid(nil)), ReasonToken},
		"another's key":               {foreign.token(t, valid(nil)), ReasonToken},
		"an unknown kid":              {with(map[string]any{"kid": "x"}), ReasonToken},
		"no kid":                      {with(map[string]any{"kid": nil}), ReasonToken},
		"a kid that is a number":      {with(map[string]any{"kid": 1}), ReasonToken},
		"a critical extension":        {with(map[string]any{"kid": "d", "crit": []string{"b64"}, "b64": false}), ReasonToken},
		"an empty critical extension": {with(map[string]any{"kid": "d", "crit": []string{}}), ReasonToken},
		"another signature":           {changed(plain(nil)), ReasonToken},
		"another's claims":            {spliced(plain(nil), plain(map[string]any{"sub": "eve"})), ReasonToken},
		"no signature":                {plain(nil)[:strings.LastIndexByte(plain(nil), '.')+1], ReasonToken},
		"padded":                      {plain(nil) + "=", ReasonForm},
		"four parts":                  {plain(nil) + ".x", ReasonForm},
		"nothing":                     {"..", ReasonForm},
	} {
		t.Run(name, func(t *testing.T) {
			if reason := refusedFor(a, tc.token); reason != tc.reason {
				t.Errorf("refused for %q, want %q", reason, tc.reason)
			}
		})
	}
	p, err := a.Check(t.Context(), plain(map[string]any{"scope": "admin voice openid"}))
	want := Principal{Kind: KindJWT, ID: "jwt:example:ada", Name: "example", User: user.Must("ada"), Owner: "team", Scopes: ScopeVoice, Limits: Limits{Sessions: 2}}
	if want.Expires, want.Mark = p.Expires, p.Mark; p.Mark == "" || err != nil || p != want || p.Expires.IsZero() || time.Until(p.Expires) > time.Hour {
		t.Errorf("%+v, %v", p, err)
	}
}

// changed is a token with another last byte of its signature.
func changed(token string) string {
	at := strings.LastIndexByte(token, '.') + 2
	other := byte('A')
	if token[at] == other {
		other = 'B'
	}
	return token[:at] + string(other) + token[at+1:]
}

// spliced is one token with the claims of another.
func spliced(token, other string) string {
	a, b := strings.Split(token, "."), strings.Split(other, ".")
	return a[0] + "." + b[1] + "." + a[2]
}

// TestScopesOfTokens: a token has those of its scopes that its issuer may grant.
func TestScopesOfTokens(t *testing.T) {
	for name, tc := range map[string]struct {
		claim string
		held  any
		want  Scopes
	}{
		"words":              {"scope", "chat  admin voice x", ScopeVoice | ScopeChat},
		"a list":             {"permissions", []string{"chat", "metrics"}, ScopeChat},
		"a list with others": {"permissions", []any{"chat", 7, nil}, ScopeChat},
		"none":               {"scope", nil, 0},
		"an object":          {"scope", map[string]any{"voice": true}, 0},
		"no scopes claim":    {"", "nothing", ScopeVoice | ScopeChat},
	} {
		key := newSigner(t, "d", "EdDSA")
		i := theIssuer(key.jwk())
		i.ScopesClaim = tc.claim
		claims := valid(map[string]any{"scope": nil})
		if tc.held != nil {
			claims[map[bool]string{true: tc.claim, false: "scope"}[tc.claim != ""]] = tc.held
		}
		p, err := newAuth(t, Options{Issuers: []Issuer{i}}).Check(t.Context(), key.token(t, claims))
		if err != nil || p.Scopes != tc.want {
			t.Errorf("%s: %q, %v", name, p.Scopes, err)
		}
	}
}

// TestIssuersApart: each issuer has its own keys, users and type; its secret is valid for no other.
func TestIssuersApart(t *testing.T) {
	key := newSigner(t, "d", "EdDSA")
	one, two := theIssuer(key.jwk()), theIssuer()
	one.UserPrefix, one.Type = "one:", "at+jwt"
	two.Name, two.Issuer, two.UserPrefix, two.UserClaim = "two", "two", "two:", "email"
	two.KeySet, two.Secret = nil, []byte(strings.Repeat("s3cret", 6))
	a := newAuth(t, Options{Issuers: []Issuer{one, two}})
	typed := func(typ any) string {
		return token(t, jwt.SigningMethodEdDSA, key.key, map[string]any{"kid": "d", "typ": typ}, valid(nil))
	}
	hs := func(secret string, claims map[string]any) string {
		return token(t, jwt.SigningMethodHS256, []byte(secret), nil, claims)
	}
	ofTwo := map[string]any{"iss": "two", "email": "ada@example.org"}
	for name, tc := range map[string]struct{ token, id string }{
		"one":                     {typed("at+jwt"), "jwt:example:one:ada"},
		"one, in another form":    {typed("application/AT+JWT"), "jwt:example:one:ada"},
		"of another type":         {typed("JWT"), ""},
		"without a type":          {typed(nil), ""},
		"two":                     {hs(string(two.Secret), valid(ofTwo)), "jwt:two:two:ada@example.org"},
		"two with one name":       {hs(string(two.Secret), valid(nil)), ""},
		"two with another secret": {hs("another", valid(ofTwo)), ""},
		"two with one key":        {key.token(t, valid(ofTwo)), ""},
		"two, a longer hash":      {token(t, jwt.SigningMethodHS512, two.Secret, nil, valid(ofTwo)), ""},
		"two without the claim":   {hs(string(two.Secret), valid(map[string]any{"iss": "two"})), ""},
	} {
		p, err := a.Check(t.Context(), tc.token)
		if p.ID != tc.id || (err == nil) != (tc.id != "") {
			t.Errorf("%s: %q, %v; want %q", name, p.ID, err, tc.id)
		}
	}
}

// TestKeySets: the usable keys of a set.
func TestKeySets(t *testing.T) {
	key := newSigner(t, "d", "EdDSA")
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	change := func(name string, value any) map[string]any {
		m := key.jwk()
		if m[name] = value; value == nil {
			delete(m, name)
		}
		return m
	}
	many := make([]map[string]any, maxSetKeys+1)
	for i := range many {
		many[i] = change("kid", string(rune('a'+i)))
	}
	other := change("kid", "other")
	for name, tc := range map[string]struct {
		set  []byte
		want int // keys; 0 means an error
		says string
	}{
		"one":                              {published(key.jwk()), 1, ""},
		"two":                              {published(key.jwk(), other), 2, ""},
		"the maximum":                      {published(many[1:]...), maxSetKeys, ""},
		"too many":                         {published(many...), 0, "the maximum is 64"},
		"too large":                        {append(published(key.jwk()), make([]byte, maxSetBytes)...), 0, "the maximum is"},
		"without a kid":                    {published(change("kid", nil)), 0, "no kid"},
		"for encryption":                   {published(change("use", "enc")), 0, "signatures"},
		"for signing alone":                {published(change("key_ops", []string{"sign"})), 0, "signatures"},
		"symmetric":                        {published(map[string]any{"kty": "oct", "kid": "1", "k": "c2VjcmV0"}), 0, "symmetric"},
		"of an unknown kind":               {published(change("crv", "Ed448")), 0, "cannot be read"},
		"for agreement":                    {published(change("crv", "X25519")), 0, ""},
		"a short RSA key":                  {published(signer{"s", "RS256", small}.jwk()), 0, "1024 bits"},
		"an unusable key and a usable one": {published(change("crv", "Ed448"), other), 1, ""},
		"one kid twice":                    {published(key.jwk(), key.jwk()), 0, `"d"`},
		"an empty set":                     {published(), 0, ""},
		"not a set":                        {[]byte(`[]`), 0, "JSON Web Key Set"},
		"not JSON":                         {[]byte(`-----BEGIN PUBLIC KEY-----`), 0, "JSON Web Key Set"},
	} {
		keys, err := parseKeySet(tc.set)
		if len(keys) != tc.want || (err == nil) != (tc.want > 0) || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %d keys, %v", name, len(keys), err)
		}
		if wrong := CheckKeyFile(tc.set); (wrong == nil) != (tc.want > 0) {
			t.Errorf("%s: %v", name, wrong)
		}
	}
}

// TestInvalidIssuers: settings that would let in more than intended make no Authenticator.
func TestInvalidIssuers(t *testing.T) {
	key := newSigner(t, "d", "EdDSA")
	for name, change := range map[string]func(*Issuer){
		"no audience":                 func(i *Issuer) { i.Audience = nil },
		"an empty audience":           func(i *Issuer) { i.Audience = []string{""} },
		"no name":                     func(i *Issuer) { i.Issuer = "" },
		"no algorithm":                func(i *Issuer) { i.Algorithms = []string{"none"} },
		"a secret's with public keys": func(i *Issuer) { i.Algorithms = []string{"RS256", "HS256"} },
		"a public key's with a secret": func(i *Issuer) {
			i.KeySet, i.Secret, i.Algorithms = nil, make([]byte, MinSecret), []string{"RS256"}
		},
		"a short secret": func(i *Issuer) { i.KeySet, i.Secret = nil, make([]byte, MinSecret-1) },
		"no keys":        func(i *Issuer) { i.KeySet = nil },
		"keys that fail": func(i *Issuer) { i.KeySet = []byte(`{}`) },
	} {
		i := theIssuer(key.jwk())
		change(&i)
		if a, err := New(Options{Issuers: []Issuer{i}}); err == nil {
			a.Close()
			t.Errorf("%s is accepted", name)
		}
	}
	if _, err := New(Options{Issuers: []Issuer{theIssuer(key.jwk()), theIssuer(key.jwk())}}); err == nil {
		t.Error("one issuer twice is accepted")
	}
}
