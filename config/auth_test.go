package config

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"voicegw/internal/auth"
	"voicegw/internal/user"
)

const aHash = "5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5"

// authProblems are rows of TestProblems.
var authProblems = []wrong{
	{"a public gateway without credentials", "listen: 0.0.0.0:8080\n", nil, nil, []string{
		`dir/voicegw.yaml:1: listen is 0.0.0.0:8080, which other machines can reach, and no authentication is configured, so anyone could use your provider's key. Make an API key with voicegw keys new`,
	}},
	{"an empty key", "auth:\n  keys:\n    web: {}\n", nil, nil, []string{
		`VOICEGW_AUTH_KEYS_WEB_ID: auth.keys.web.id must be the 8 characters`,
		`VOICEGW_AUTH_KEYS_WEB_SHA256: auth.keys.web.sha256 must be the SHA-256 of a key`,
		`VOICEGW_AUTH_KEYS_WEB_SCOPES: auth.keys.web.scopes is missing; choose from voice, chat,`,
	}},
	{"a key with only invalid values", "auth:\n  keys:\n    web:\n      id: WEB\n      sha256: vgk_0123abcd_secret\n      scopes: [voice, all]\n      user: 'key:x'\n      expires: tomorrow\n      limits:\n        sessions: -1\n        new_per_second: -0.5\n        cost_per_day: .inf\n", nil, nil, []string{
		`dir/voicegw.yaml:12: auth.keys.web.limits.cost_per_day must be a number`,
		`dir/voicegw.yaml:4: auth.keys.web.id must be`,
		`dir/voicegw.yaml:5: auth.keys.web.sha256 must be the SHA-256`,
		`dir/voicegw.yaml:6: auth.keys.web.scopes: unknown scope "all"; known are voice,`,
		`dir/voicegw.yaml:7: auth.keys.web.user must not begin with "key:"`,
		`dir/voicegw.yaml:8: auth.keys.web.expires must be a date such as`,
		`dir/voicegw.yaml:11: auth.keys.web.limits.new_per_second must be 0 for no limit`,
		`dir/voicegw.yaml:10: auth.keys.web.limits.sessions must be from 0`,
	}},
	{"a duplicate id", "auth:\n  keys:\n    a: {id: 0123abcd, sha256: " + aHash + ", scopes: [voice]}\n    b: {id: 0123abcd, sha256: " + aHash + ", scopes: [voice]}\n", nil, nil, []string{
		`dir/voicegw.yaml:4: auth.keys.b.id is also the id of the key a;`,
	}},
	{"an empty issuer", "auth:\n  jwt:\n    idp: {}\n", nil, nil, []string{
		`VOICEGW_AUTH_JWT_IDP_ISSUER: auth.jwt.idp.issuer is missing`,
		`VOICEGW_AUTH_JWT_IDP_AUDIENCE: auth.jwt.idp.audience is missing`,
		`VOICEGW_AUTH_JWT_IDP_ISSUER: auth.jwt.idp needs one of jwks_url, discovery, keys_file and hs_secret to check its tokens; it has none of them.`,
	}},
	{"an issuer with only invalid values", "auth:\n  jwt:\n    idp:\n      issuer: http://id.example\n      audience: ['']\n      discovery: true\n      jwks_url: http://id.example/keys\n      hs_secret: short\n      algs: [HS256, RS256, none]\n      claims: {user: ''}\n      scopes: []\n      leeway: 1h\n", nil, nil, []string{
		`dir/voicegw.yaml:5: auth.jwt.idp.audience has an empty entry`,
		`dir/voicegw.yaml:4: auth.jwt.idp needs one of jwks_url, discovery, keys_file and hs_secret to check its tokens; it has jwks_url and discovery and hs_secret.`,
		`dir/voicegw.yaml:7: auth.jwt.idp.jwks_url must begin with https://`,
		`dir/voicegw.yaml:4: auth.jwt.idp.issuer must begin with https://`,
		`dir/voicegw.yaml:8: auth.jwt.idp.hs_secret has 5 bytes and could be guessed`,
		`dir/voicegw.yaml:9: auth.jwt.idp.algs has the entry "RS256"; with this kind of keys it may have HS256, HS384, HS512. Public keys and a shared secret are never mixed`,
		`dir/voicegw.yaml:9: auth.jwt.idp.algs has the entry "none"`,
		`dir/voicegw.yaml:11: auth.jwt.idp.scopes is missing`,
		`dir/voicegw.yaml:10: auth.jwt.idp.claims.user is empty`,
		`dir/voicegw.yaml:12: auth.jwt.idp.leeway must be from 0s to 5m0s`,
	}},
	{"public keys with a secret's algorithm", "auth:\n  jwt:\n    idp: {issuer: i, audience: [a], jwks_url: 'https://id.example/keys', algs: [RS256, HS256]}\n", nil, nil, []string{
		`dir/voicegw.yaml:3: auth.jwt.idp.algs has the entry "HS256"; with this kind of keys it may have RS256,`,
	}},
	{"issuers with the same users", "auth:\n  jwt:\n    a: {issuer: i, audience: [a], discovery: false, jwks_url: 'https://a.example/keys'}\n    b: {issuer: i, audience: [a], jwks_url: 'https://b.example/keys', user_prefix: 'b:'}\n", nil, nil, []string{
		`dir/voicegw.yaml:4: auth.jwt.b.issuer is also the issuer of a;`,
		`dir/voicegw.yaml:4: auth.jwt.b.user_prefix is "b:", and that of a is "": a user of one could be taken for a user of the other`,
	}},
	{"a file without keys", "auth:\n  jwt:\n    idp: {issuer: i, audience: [a], keys_file: core.md}\n", nil, nil, []string{
		`dir/voicegw.yaml:3: auth.jwt.idp.keys_file: the file dir/core.md cannot be used: it is not a JSON Web Key Set`,
	}},
	{"invalid names", "auth:\n  keys:\n    Web_1: {id: 0123abcd}\n    api_key: x\n  kees: {}\n", nil, nil, []string{
		`dir/voicegw.yaml:3: There is no setting "auth.keys.Web_1". The name of a key has letters from a to z, digits and hyphens`,
		`dir/voicegw.yaml:4: There is no setting "auth.keys.api_key". Did you mean`,
		`dir/voicegw.yaml:5: There is no setting "auth.kees". Did you mean auth.keys?`,
	}},
}

// TestAuthOptions: settings from the file and from variables become the options of package auth, and allow an address
// that other machines can reach.
func TestAuthOptions(t *testing.T) {
	c := mustLoad(t, `
listen: 0.0.0.0:8080
auth:
  keys:
    backend: {id: 0123abcd, sha256: `+aHash+`, scopes: [chat, tickets, "kb:staff"], owner: team, expires: 2027-01-31, limits: {sessions: 3, new_per_second: 0.5, minutes_per_day: 90, cost_per_day: 12.5}}
    kiosk: {id: 4e5f6a7b, sha256: `+strings.ToUpper(aHash)+`, scopes: [voice], user: ' Kiosk ', expires: '2027-01-31T12:00:00+01:00'}
  jwt:
    idp: {issuer: 'https://id.example', audience: [voicegw], discovery: true, user_prefix: 'idp:'}
    shared:
      issuer: mine
      audience: [a, b]
      hs_secret: 0123456789abcdef0123456789abcdef
      algs: [HS512]
      claims: {user: email, scopes: ''}
      scopes: [voice, inspect, 'kb:hr', 'kb:hr']
      user_prefix: 'mine:'
      type: at+jwt
      leeway: 1m
      limits: {sessions: 2}
`, []string{"VOICEGW_AUTH_KEYS_MY_OWN_SHA256=" + aHash, "VOICEGW_AUTH_KEYS_MY_OWN_ID=aaaaaaaa", "VOICEGW_AUTH_KEYS_MY_OWN_SCOPES=admin"},
		Flag{"--set", "auth.keys.kiosk.owner", "shop"})
	if !c.Auth.Enabled() {
		t.Error("authentication is not enabled")
	}
	hash, err := auth.ParseKeyHash(aHash)
	if err != nil {
		t.Fatal(err)
	}
	keys, issuers := c.Auth.Options()
	same := cmp.Comparer(func(a, b user.User) bool { return a == b })
	if diff := cmp.Diff([]auth.Key{
		{ID: "0123abcd", Name: "backend", Hash: hash, Scopes: auth.ScopeChat | auth.ScopeTickets, Grants: []string{"kb:staff"}, Owner: "team", Expires: time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC),
			Limits: auth.Limits{Sessions: 3, NewPerSecond: 0.5, MinutesPerDay: 90, CostPerDay: 12.5}},
		{ID: "4e5f6a7b", Name: "kiosk", Hash: hash, Scopes: auth.ScopeVoice, User: user.Must("Kiosk"), Owner: "shop", Expires: time.Date(2027, 1, 31, 11, 0, 0, 0, time.UTC)},
		{ID: "aaaaaaaa", Name: "my-own", Hash: hash, Scopes: auth.ScopeAdmin},
	}, keys, same); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]auth.Issuer{
		{Name: "idp", Issuer: "https://id.example", Audience: []string{"voicegw"}, Discover: true, UserClaim: "sub", UserPrefix: "idp:", ScopesClaim: "scope",
			Scopes: auth.ScopeVoice | auth.ScopeChat, Leeway: 30 * time.Second},
		{Name: "shared", Issuer: "mine", Audience: []string{"a", "b"}, Secret: []byte("0123456789abcdef0123456789abcdef"), Algorithms: []string{"HS512"}, Type: "at+jwt",
			UserClaim: "email", UserPrefix: "mine:", Scopes: auth.ScopeVoice | auth.ScopeInspect, Grants: []string{"kb:hr"}, Leeway: time.Minute, Limits: auth.Limits{Sessions: 2}},
	}, issuers, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	if got := c.Secrets(); !slices.Contains(got, "0123456789abcdef0123456789abcdef") {
		t.Errorf("the secrets are %q", got)
	}
	a, err := auth.New(auth.Options{Keys: keys, Issuers: issuers[1:]})
	if err != nil {
		t.Fatal(err)
	}
	a.Close()
}

// TestExpiredKey: an expired key causes a warning, and the gateway starts.
func TestExpiredKey(t *testing.T) {
	_, warnings, err := load(t, "auth:\n  keys:\n    old: {id: 0123abcd, sha256: "+aHash+", scopes: [voice], expires: 2020-01-01}\n", nil)
	if err != nil || !slices.ContainsFunc(warnings, func(w string) bool { return strings.HasPrefix(w, "auth.keys.old.expires is in the past") }) {
		t.Errorf("%q, %v", warnings, err)
	}
}
