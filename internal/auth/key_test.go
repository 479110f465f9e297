package auth

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"voicegw/internal/user"
)

// aKey is an API key.
const (
	aSecret = "q1vXH0c9y2bA7eLkPZ5sTnRwUjMdGfKoIxCuV8B4N6g"
	aKey    = "vgk_0123abcd_" + aSecret
)

// keyOf returns the description of a key.
func keyOf(k APIKey, change func(*Key)) Key {
	out := Key{ID: k.ID(), Name: "backend", Hash: k.Hash(), Scopes: ScopeVoice | ScopeChat | ScopeTickets, Owner: "team", Limits: Limits{MinutesPerDay: 5}}
	if change != nil {
		change(&out)
	}
	return out
}

// TestKeysOpen: a key is accepted until it expires; the answer to another secret, or to an unknown id, is only that it is
// wrong.
func TestKeysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key, bound, ending, other := NewAPIKey(), NewAPIKey(), NewAPIKey(), NewAPIKey()
		end := time.Now().Add(time.Hour)
		a := newAuth(t, Options{OperatorKey: "0123456789abcdef", Keys: []Key{
			keyOf(key, nil), keyOf(bound, func(k *Key) { k.User = user.Must("ada") }), keyOf(ending, func(k *Key) { k.Expires = end }),
		}})
		want := Principal{Kind: KindKey, ID: "key:" + key.ID(), Name: "backend", Owner: "team", Scopes: ScopeVoice | ScopeChat | ScopeTickets, Mark: key.Hash().String()[:16], Limits: Limits{MinutesPerDay: 5}}
		if p, err := a.Check(t.Context(), key.Reveal()); err != nil || p != want || p.Self().String() != "key:"+key.ID() || !p.Names() {
			t.Errorf("%+v, %v", p, err)
		}
		if p, err := a.Check(t.Context(), bound.Reveal()); err != nil || p.Self() != user.Must("ada") || p.Names() {
			t.Errorf("%+v, %v", p, err)
		}
		if p, err := a.Check(t.Context(), "0123456789abcdef"); err != nil || p.Kind != KindOperator || p.Scopes != AllScopes || !p.Self().IsZero() {
			t.Errorf("%+v, %v", p, err)
		}
		wrong := key.Reveal()[:13] + other.Reveal()[13:]
		for secret, reason := range map[string]string{
			wrong: ReasonKey, other.Reveal(): ReasonKey, key.Reveal()[:55]: ReasonForm, "vgk_": ReasonForm,
			"0123456789abcdeg": ReasonForm, "0123456789abcde": ReasonForm, "a.b.c": ReasonForm, key.Hash().String(): ReasonForm, "": ReasonForm,
		} {
			if got := refusedFor(a, secret); got != reason {
				t.Errorf("%.16s…: refused for %q, want %q", secret, got, reason)
			}
		}
		pass(time.Hour - 1)
		if reason := refusedFor(a, ending.Reveal()); reason != "" {
			t.Errorf("before its end: %s", reason)
		}
		pass(1)
		if reason := refusedFor(a, ending.Reveal()); reason != ReasonExpired {
			t.Errorf("at its end: %q", reason)
		}
	})
}

// TestCredentialsRequired: without keys and issuers every caller may talk and write; with one of them, no caller without
// credentials may do anything.
func TestCredentialsRequired(t *testing.T) {
	key := NewAPIKey()
	for name, tc := range map[string]struct {
		o    Options
		want Principal
	}{
		"on this machine":    {Options{OperatorKey: "0123456789abcdef"}, Principal{Kind: KindLocal, ID: "local", Scopes: ScopeVoice | ScopeChat}},
		"for all callers":    {Options{Exposed: true}, Principal{Kind: KindOpen, ID: "open", Scopes: ScopeVoice | ScopeChat}},
		"with a key":         {Options{Keys: []Key{keyOf(key, nil)}}, Principal{}},
		"with a key, afar":   {Options{Keys: []Key{keyOf(key, nil)}, Exposed: true}, Principal{}},
		"with an issuer":     {Options{Issuers: []Issuer{theIssuer(newSigner(t, "d", "EdDSA").jwk())}}, Principal{}},
		"a key that is over": {Options{Keys: []Key{keyOf(key, func(k *Key) { k.Expires = time.Unix(1, 0) })}}, Principal{}},
	} {
		a := newAuth(t, tc.o)
		if p := a.Unauthenticated(); p != tc.want || a.Required() != p.IsZero() || !p.Unauthenticated() {
			t.Errorf("%s: %+v", name, p)
		}
	}
	for name, keys := range map[string][]Key{
		"an invalid id": {keyOf(key, func(k *Key) { k.ID = "x" })}, "one id twice": {keyOf(key, nil), keyOf(key, nil)},
	} {
		if _, err := New(Options{Keys: keys}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// TestAdmits: the earlier callers that a new configuration would refuse.
func TestAdmits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stays, goes, ends, moves, again := NewAPIKey(), NewAPIKey(), NewAPIKey(), NewAPIKey(), NewAPIKey()
		ada, eve := user.Must("ada"), user.Must("eve")
		issuer := theIssuer(newSigner(t, "d", "EdDSA").jwk())
		before := newAuth(t, Options{OperatorKey: "0123456789abcdef", Issuers: []Issuer{issuer}, Keys: []Key{
			keyOf(stays, nil), keyOf(goes, nil), keyOf(ends, func(k *Key) { k.Expires = time.Now().Add(time.Minute) }), keyOf(moves, func(k *Key) { k.User = ada }), keyOf(again, nil),
		}})
		let := map[string]Principal{
			"none":                                   {},
			"a ticket of a time without principals":  {Kind: KindTicket, User: ada},
			"a ticket of a remaining key":            {Kind: KindTicket, ID: "key:" + stays.ID(), User: ada},
			"a ticket of a removed key":              {Kind: KindTicket, ID: "key:" + goes.ID(), User: ada},
			"a user":                                 {Kind: KindJWT, ID: "jwt:example:ada", User: ada},
			"a ticket of that user":                  {Kind: KindTicket, ID: "jwt:example:ada", User: ada},
			"a user of an issuer that never existed": {Kind: KindJWT, ID: "jwt:other:ada", User: ada},
			"operators":                              {Kind: KindOperator, ID: "operator"},
			"a console":                              {Kind: KindConsole, ID: "console"},
			"local":                                  {Kind: KindLocal, ID: "local"},
			"an unknown kind":                        {Kind: "x", ID: "x"},
		}
		for name, k := range map[string]APIKey{"stays": stays, "goes": goes, "ends": ends, "moves": moves, "is another": again} {
			p, err := before.Check(t.Context(), k.Reveal())
			if err != nil {
				t.Fatal(err)
			}
			let[name] = p
		}
		let["a ticket of one that is another"] = Principal{Kind: KindTicket, ID: "key:" + again.ID(), Mark: let["is another"].Mark, User: ada}
		let["an issuer that is another"] = Principal{Kind: KindJWT, ID: "jwt:example:ada", Mark: "0102030405060708", User: ada}
		after := newAuth(t, Options{OperatorKey: "0123456789abcdef", Issuers: []Issuer{issuer}, Keys: []Key{
			keyOf(stays, func(k *Key) { k.Scopes = ScopeVoice }), keyOf(ends, func(k *Key) { k.Expires = time.Now().Add(time.Minute) }), keyOf(moves, func(k *Key) { k.User = eve }),
			keyOf(again, func(k *Key) { k.Hash = NewAPIKey().Hash() }), // the id is used again
		}})
		gone := func(a *Authenticator) string {
			var names []string
			for name, p := range let {
				if !a.Admits(p, time.Now()) {
					names = append(names, name)
				}
			}
			return sorted(names)
		}
		never := []string{"an unknown kind", "a user of an issuer that never existed", "an issuer that is another", "local"}
		if got, want := gone(before), sorted(never); got != want {
			t.Errorf("before: %s, want %s", got, want)
		}
		if got, want := gone(after), sorted(append(never, "goes", "a ticket of a removed key", "moves", "is another", "a ticket of one that is another")); got != want {
			t.Errorf("after: %s, want %s", got, want)
		}
		pass(time.Minute)
		if got, want := gone(after), sorted(append(never, "goes", "a ticket of a removed key", "moves", "is another", "a ticket of one that is another", "ends")); got != want {
			t.Errorf("later: %s, want %s", got, want)
		}
		none := newAuth(t, Options{})
		var out []string
		for _, name := range []string{"local", "operators", "a console", "a user"} {
			if !none.Admits(let[name], time.Now()) {
				out = append(out, name)
			}
		}
		if len(out) != 3 {
			t.Errorf("without anything: %q", out)
		}
		current := Only(before)
		if old := current.Swap(after); old != before || current.Get() != after {
			t.Error("it was not swapped")
		}
	})
}

// TestLapses: a session ends with its credentials only if configured; a key has its configured end, a token its own.
func TestLapses(t *testing.T) {
	key, soon, late := NewAPIKey(), time.Unix(1000, 0).UTC(), time.Unix(2000, 0).UTC()
	issuer := theIssuer(newSigner(t, "d", "EdDSA").jwk())
	let := map[string]Principal{
		"a key":           {Kind: KindKey, ID: "key:" + key.ID(), Expires: soon},
		"a ticket of it":  {Kind: KindTicket, ID: "key:" + key.ID()},
		"a token":         {Kind: KindJWT, ID: "jwt:example:ada", User: user.Must("ada"), Expires: soon},
		"a ticket of one": {Kind: KindTicket, ID: "jwt:example:ada", Expires: soon},
		"an operator":     {Kind: KindOperator, ID: "operator"},
		"none":            {},
	}
	for enforce, want := range map[bool]map[string]time.Time{false: {}, true: {"a key": late, "a ticket of it": late, "a token": soon, "a ticket of one": soon}} {
		current := Only(newAuth(t, Options{OperatorKey: "0123456789abcdef", EnforceExpiry: enforce, Issuers: []Issuer{issuer}, Keys: []Key{keyOf(key, func(k *Key) { k.Expires = late })}}))
		for name, p := range let {
			if got := current.Lapses(p); !got.Equal(want[name]) {
				t.Errorf("%s, enforced %t: %v, want %v", name, enforce, got, want[name])
			}
		}
	}
}

// TestGrants: the scopes of a key or a token for tools: those of the configuration and, for a token, of its issuer.
func TestGrants(t *testing.T) {
	key, signer := NewAPIKey(), newSigner(t, "d", "EdDSA")
	issuer := theIssuer(signer.jwk())
	issuer.Grants = []string{"kb:staff", "kb:hr", "calendar.write"}
	a := newAuth(t, Options{Issuers: []Issuer{issuer}, Keys: []Key{keyOf(key, func(k *Key) { k.Grants = []string{"kb:staff"} })}})
	for secret, want := range map[string]string{
		key.Reveal(): "kb:staff",
		signer.token(t, valid(map[string]any{"scope": "voice kb:hr kb:board staff calendar.write"})): "kb:hr calendar.write",
		signer.token(t, valid(map[string]any{"scope": []string{"kb:hr", "kb:staff"}})):               "kb:staff kb:hr",
		signer.token(t, valid(map[string]any{"scope": "voice"})):                                     "",
	} {
		p, err := a.Check(t.Context(), secret)
		if got := strings.Join(p.Granted(), " "); err != nil || got != want || p.Grants != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	issuer.ScopesClaim = ""
	if p, err := newAuth(t, Options{Issuers: []Issuer{issuer}}).Check(t.Context(), signer.token(t, valid(nil))); err != nil || p.Grants != "kb:staff kb:hr calendar.write" {
		t.Errorf("without a claim: %q, %v", p.Grants, err)
	}
	for text, want := range map[string]string{"voice kb:staff kb:staff": "voice kb:staff", "kb:a calendar.write https://x.example/y": "kb:a calendar.write https://x.example/y", "kb:": "", ":kb": "", "calendar_write": "", "kb:ä": "", "voice kb:x y": "", "kb:" + strings.Repeat("x", 62): ""} {
		scopes, grants, err := ParseAccess(strings.Fields(text))
		if got := strings.TrimSpace(scopes.String() + " " + strings.Join(grants, " ")); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	many := make([]string, MostGrants+1)
	for i := range many {
		many[i] = "kb:" + strconv.Itoa(i)
	}
	if _, _, err := ParseAccess(many); err == nil {
		t.Error("too many are accepted")
	}
}

// pass advances the fake time of synctest.
func pass(d time.Duration) { <-time.After(d) }

// sorted joins names in their order.
func sorted(names []string) string {
	return strings.Join(slices.Sorted(slices.Values(names)), ", ")
}

// TestBearer: the accepted forms of the header Authorization.
func TestBearer(t *testing.T) {
	for name, tc := range map[string]struct {
		headers []string
		secret  string
		err     error
	}{
		"plain":           {[]string{"Bearer abc"}, "abc", nil},
		"in small":        {[]string{"bearer abc"}, "abc", nil},
		"more spaces":     {[]string{"BEARER   a.b-c_d~e/f+g="}, "a.b-c_d~e/f+g=", nil},
		"the maximum":     {[]string{"Bearer " + strings.Repeat("x", maxBearer)}, strings.Repeat("x", maxBearer), nil},
		"more":            {[]string{"Bearer " + strings.Repeat("x", maxBearer+1)}, "", ErrBearer},
		"none":            {nil, "", ErrNoCredentials},
		"two":             {[]string{"Bearer abc", "Bearer abc"}, "", ErrAmbiguous},
		"empty":           {[]string{""}, "", ErrBearer},
		"the scheme":      {[]string{"Bearer"}, "", ErrBearer},
		"no secret":       {[]string{"Bearer  "}, "", ErrBearer},
		"another scheme":  {[]string{"Basic abc"}, "", ErrBearer},
		"no scheme":       {[]string{"abc"}, "", ErrBearer},
		"a longer scheme": {[]string{"Bearers abc"}, "", ErrBearer},
		"two words":       {[]string{"Bearer abc def"}, "", ErrBearer},
		"a tab":           {[]string{"Bearer\tabc"}, "", ErrBearer},
		"a list":          {[]string{"Bearer abc, Bearer def"}, "", ErrBearer},
		"not ASCII":       {[]string{"Bearer äbc"}, "", ErrBearer},
	} {
		if secret, err := ParseBearer(tc.headers); secret != tc.secret || !errors.Is(err, tc.err) {
			t.Errorf("%s: %q, %v", name, secret, err)
		}
	}
}

// FuzzBearer: a secret is visible ASCII, the end of its header, and read again.
func FuzzBearer(f *testing.F) {
	f.Add("Bearer " + aKey)
	f.Add("bearer  a.b.c")
	f.Add("Basic YTpi")
	f.Fuzz(func(t *testing.T, header string) {
		secret, err := ParseBearer([]string{header})
		if (err == nil) != (secret != "") || !strings.HasSuffix(header, secret) || len(secret) > maxBearer {
			t.Fatalf("%q: %q, %v", header, secret, err)
		}
		if again, err2 := ParseBearer([]string{"Bearer " + secret}); err == nil && (again != secret || err2 != nil) {
			t.Errorf("%q: %q, %v", secret, again, err2)
		}
	})
}

// FuzzCheck: no text opens a gateway without the right keys, and none crashes it.
func FuzzCheck(f *testing.F) {
	a, err := New(Options{OperatorKey: "0123456789abcdef", Keys: []Key{{ID: "0123abcd", Name: "a"}}, Issuers: []Issuer{{
		Name: "example", Issuer: "i", Audience: []string{"voicegw"}, Secret: []byte(strings.Repeat("k", MinSecret)), Scopes: AllScopes,
	}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(aKey)
	f.Add("eyJhbGciOiJub25lIn0.eyJpc3MiOiJpIiwiYXVkIjoidm9pY2VndyIsInN1YiI6ImEiLCJleHAiOjk5OTk5OTk5OTl9.")
	f.Add("eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJpIiwiZXhwIjoxZTMwMH0.AAAA")
	f.Fuzz(func(t *testing.T, secret string) {
		if secret == "0123456789abcdef" {
			return
		}
		p, err := a.Check(t.Context(), secret)
		var why *RefusedError
		if !p.IsZero() || !errors.As(err, &why) || why.Reason == "" {
			t.Errorf("%q: %+v, %v", secret, p, err)
		}
	})
}

// FuzzKeySet: a set has a limited number of keys, each with a kid; a file of another form has one without, or several
// with one each.
func FuzzKeySet(f *testing.F) {
	f.Add([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"1","x":"A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","kid":"1","x":"AA","y":"AA"},{"kty":"RSA","kid":"2","n":"AQAB","e":"AQAB"}]}`))
	f.Add([]byte("-----BEGIN PUBLIC KEY-----\nkid: 1\n\nMCowBQYDK2VwAyEAA6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=\n-----END PUBLIC KEY-----\n"))
	f.Add([]byte("-----BEGIN PUBLIC KEY-----\n\nMCowBQYDK2VwAyEAA6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=\n-----END PUBLIC KEY-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := parseKeyFile(data)
		if (err == nil) != (len(file) > 0) || len(file) > maxSetKeys {
			t.Fatalf("%d keys in a file, %v", len(file), err)
		}
		for _, k := range file {
			if m := k.Marshal(); m.KID == "" && len(file) > 1 || m.D != "" || m.K != "" {
				t.Errorf("%+v", m)
			}
		}
		keys, err := parseKeySet(data)
		if (err == nil) != (len(keys) > 0) || len(keys) > maxSetKeys {
			t.Fatalf("%d keys, %v", len(keys), err)
		}
		for _, k := range keys {
			if k.Marshal().KID == "" || k.Marshal().D != "" || k.Marshal().K != "" {
				t.Errorf("%+v", k.Marshal())
			}
		}
	})
}
