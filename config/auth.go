package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"voicegw/config/setting"
	"voicegw/internal/auth"
	"voicegw/internal/user"
)

// Auth defines who may use the gateway. With a key or an issuer, everyone needs credentials.
type Auth struct {
	// API keys, by name.
	Keys map[string]*AuthKey `key:"keys"`
	// Identity providers, by name.
	JWT map[string]*AuthIssuer `key:"jwt"`
	// Ends sessions [when their credentials expire](authentication.md#when-credentials-end).
	EnforceExpiry bool `key:"enforce_expiry"`
}

// AuthKey is an API key, stored as a hash.
type AuthKey struct {
	// The 8 characters after `vgk_`; `voicegw keys new` prints all these settings.
	ID string `key:"id" unset:"needed" eg:"0a1b2c3d"`
	// Hexadecimal SHA-256 of the whole key.
	SHA256 string `key:"sha256" unset:"needed" eg:"5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5"`
	// [Scopes](authentication.md#scopes), also [of tools](authentication.md#scopes-of-tools).
	Scopes []string `key:"scopes" unset:"needed" eg:"[voice, chat, tickets]"`
	// The only user of the key.
	User string `key:"user" eg:"kiosk-1"`
	// For people.
	Owner string `key:"owner" eg:"platform team"`
	// A date (its end in UTC) or time: `2027-01-31`, `2027-01-31T12:00:00Z`.
	Expires string     `key:"expires" unset:"never" eg:"2099-12-31"`
	Limits  AuthLimits `key:"limits"`
}

// AuthIssuer is an identity provider. Exactly one of JWKSURL, Discovery, KeysFile and HSSecret is set.
type AuthIssuer struct {
	// Claim `iss`, exactly.
	Issuer string `key:"issuer" unset:"needed" eg:"https://id.example.com"`
	// Accepted values of `aud`.
	Audience []string `key:"audience" unset:"needed" eg:"[voicegw]"`
	// Address of the public keys, `https` or loopback. Set exactly one of this and the next three.
	JWKSURL string `key:"jwks_url" eg:"https://elsewhere.example.com/keys"`
	// Reads the address from `<issuer>/.well-known/openid-configuration`.
	Discovery bool `key:"discovery" eg:"true"`
	// File with public keys: JSON Web Keys or [PEM](authentication.md#keys-in-a-file).
	KeysFile setting.File `key:"keys_file" eg:"issuer-keys.json"`
	// Shared secret of at least 32 bytes, for HS256, HS384 or HS512.
	HSSecret setting.Secret `key:"hs_secret" eg:"make-one-with-openssl-rand-hex-32"`
	// Algorithms; also RS384, RS512, PS256, PS384, PS512, ES384, ES512.
	Algs []string `key:"algs" unset:"RS256, ES256, EdDSA; HS256 with hs_secret" eg:"[RS256, ES256, EdDSA]"`
	// Required header `typ`, such as `at+jwt`.
	Type   string     `key:"type" unset:"any" eg:"at+jwt"`
	Claims AuthClaims `key:"claims"`
	// Scopes a token can have at most, also of tools.
	Scopes []string `key:"scopes"`
	// Prefix of user names; required with several issuers.
	UserPrefix string `key:"user_prefix" eg:"'example:'"`
	// Allowed clock difference, up to `5m`.
	Leeway time.Duration `key:"leeway" from:"0s" to:"5m"`
	// For people.
	Owner string `key:"owner" eg:"platform team"`
	// Limits of each user.
	Limits AuthLimits `key:"limits"`
}

// AuthClaims are names of claims.
type AuthClaims struct {
	// Claim with the user's name; choose one users cannot change.
	User string `key:"user"`
	// Claim with scopes, as a string or list; `""` grants all of `scopes`.
	Scopes string `key:"scopes"`
}

// AuthLimits limits a key, or each user of an issuer. 0 means no limit.
type AuthLimits struct {
	// Simultaneous voice sessions; 0 is unlimited, as below.
	Sessions int `key:"sessions" from:"0" to:"1000000"`
	// New voice sessions per second: `0.5` is one in two seconds.
	NewPerSecond float64 `key:"new_per_second"`
	// Voice minutes per day.
	MinutesPerDay float64 `key:"minutes_per_day"`
	// US dollars per day.
	CostPerDay float64 `key:"cost_per_day"`
}

// Enabled reports whether credentials are required.
func (a Auth) Enabled() bool { return len(a.Keys)+len(a.JWT) > 0 }

// Prefixes of the settings of API keys and issuers.
const (
	authKeysPrefix = "auth.keys."
	authJWTPrefix  = "auth.jwt."
)

// Options returns the validated keys and issuers for package auth.
func (a Auth) Options() (keys []auth.Key, issuers []auth.Issuer) {
	for _, name := range slices.Sorted(maps.Keys(a.Keys)) {
		k := a.Keys[name]
		out := auth.Key{ID: k.ID, Name: name, Owner: k.Owner, Limits: auth.Limits(k.Limits)}
		out.Hash, _ = auth.ParseKeyHash(k.SHA256)
		out.Scopes, out.Grants, _ = auth.ParseAccess(k.Scopes)
		out.User, _ = parseUser(k.User)
		out.Expires, _ = parseEnd(k.Expires)
		keys = append(keys, out)
	}
	for _, name := range slices.Sorted(maps.Keys(a.JWT)) {
		i := a.JWT[name]
		scopes, grants, _ := auth.ParseAccess(i.Scopes)
		issuers = append(issuers, auth.Issuer{
			Name: name, Issuer: i.Issuer, Audience: i.Audience, Algorithms: i.Algs,
			JWKS: i.JWKSURL, Discover: i.Discovery, KeySet: i.KeysFile.Data, Secret: []byte(i.HSSecret.Reveal()),
			Type: i.Type, UserClaim: i.Claims.User, UserPrefix: i.UserPrefix, ScopesClaim: i.Claims.Scopes,
			Scopes: scopes, Grants: grants, Leeway: i.Leeway, Limits: auth.Limits(i.Limits), Owner: i.Owner,
		})
	}
	return keys, issuers
}

// parseUser parses the user of an API key; zero for an empty name.
func parseUser(name string) (user.User, error) {
	if name == "" {
		return user.User{}, nil
	}
	if strings.HasPrefix(name, "key:") {
		return user.User{}, fmt.Errorf("must not begin with \"key:\", which is for keys without a user")
	}
	return user.Parse(name)
}

// parseEnd parses a key's expiry; zero for an empty text.
func parseEnd(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.AddDate(0, 0, 1), nil
	}
	end, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("must be a date such as 2027-01-31, or a time such as 2027-01-31T12:00:00Z, not %s", quote(text))
	}
	return end.UTC(), nil
}

func (v validator) validateAuth() {
	ids := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(v.config.Auth.Keys)) {
		k := v.config.Auth.Keys[name]
		v.validateKey(authKeysPrefix+name+".", k)
		other, twice := ids[k.ID]
		v.wrongIf(twice && k.ID != "", authKeysPrefix+name+".id", "is also the id of the key %s; make another key with voicegw keys new",
			other)
		ids[k.ID] = name
	}
	names := slices.Sorted(maps.Keys(v.config.Auth.JWT))
	for at, name := range names {
		v.validateIssuer(authJWTPrefix+name+".", v.config.Auth.JWT[name])
		for _, other := range names[:at] {
			v.validateApart(name, other)
		}
	}
}

func (v validator) validateKey(prefix string, k *AuthKey) {
	v.wrongIf(!auth.ValidKeyID(k.ID), prefix+"id", "must be the 8 characters after vgk_ in the key; voicegw keys new and voicegw "+
		"keys hash print them")
	_, err := auth.ParseKeyHash(k.SHA256)
	v.failed(prefix+"sha256", err)
	v.validateScopes(prefix+"scopes", k.Scopes)
	_, err = parseUser(k.User)
	v.failed(prefix+"user", err)
	end, err := parseEnd(k.Expires)
	v.failed(prefix+"expires", err)
	if !end.IsZero() && time.Now().After(end) {
		v.warnings = append(v.warnings, prefix+"expires is in the past, so the key is no longer valid.")
	}
	v.validateLimits(prefix+"limits.", k.Limits)
}

func (v validator) validateIssuer(prefix string, i *AuthIssuer) {
	v.wrongIf(i.Issuer == "", prefix+"issuer", "is missing; set it to the claim iss of its tokens")
	if len(i.Audience) == 0 || slices.Contains(i.Audience, "") {
		is := "is missing"
		if len(i.Audience) > 0 {
			is = "has an empty entry"
		}
		v.wrong(prefix+"audience", "%s; it names this gateway in the claim aud of tokens, so that tokens for other services are not "+
			"valid here", is)
	}
	v.validateKeySource(prefix, i)
	v.validateScopes(prefix+"scopes", i.Scopes)
	v.wrongIf(i.Claims.User == "", prefix+"claims.user", "is empty; name the claim with the user's name, such as sub")
	if i.UserPrefix != "" {
		_, err := parseUser(i.UserPrefix + "x")
		v.failed(prefix+"user_prefix", err)
	}
	v.validateLimits(prefix+"limits.", i.Limits)
}

func (v validator) validateKeySource(prefix string, i *AuthIssuer) {
	var given []string
	for _, source := range []struct {
		name string
		set  bool
	}{{"jwks_url", i.JWKSURL != ""}, {"discovery", i.Discovery}, {"keys_file", i.KeysFile.Path != ""}, {"hs_secret", i.HSSecret.IsSet()}} {
		if source.set || v.refused(prefix+source.name) {
			given = append(given, source.name)
		}
	}
	if len(given) != 1 {
		has := "none of them"
		if len(given) > 0 {
			has = strings.Join(given, " and ")
		}
		v.bad(prefix+"issuer", "%s needs one of jwks_url, discovery, keys_file and hs_secret to check its tokens; it has %s.",
			strings.TrimSuffix(prefix, "."), has)
	}
	wrong := auth.CheckURL(i.JWKSURL)
	v.wrongIf(i.JWKSURL != "" && wrong != "", prefix+"jwks_url", "%s", wrong)
	wrong = auth.CheckURL(i.Issuer)
	v.wrongIf(i.Discovery && i.Issuer != "" && wrong != "", prefix+"issuer", "%s for discovery", wrong)
	if i.KeysFile.Path != "" {
		if err := auth.CheckKeyFile(i.KeysFile.Data); err != nil {
			v.bad(prefix+"keys_file", "%skeys_file: the file %s cannot be used: %v.", prefix, i.KeysFile.Path, err)
		}
	}
	allowed := auth.PublicAlgorithms
	if i.HSSecret.IsSet() {
		allowed = auth.SecretAlgorithms
		n := len(i.HSSecret.Reveal())
		v.wrongIf(n < auth.MinSecret, prefix+"hs_secret", "has %d bytes and could be guessed; make one of at least %d, for example "+
			"with: openssl rand -hex 32", n, auth.MinSecret)
	}
	for _, alg := range i.Algs {
		v.wrongIf(!slices.Contains(allowed, alg), prefix+"algs", "has the entry %s; with this kind of keys it may have %s. "+
			"Public keys and a "+
			"shared secret are never mixed: a public key could be used as a secret", quote(alg), strings.Join(allowed, ", "))
	}
}

// validateApart checks that users of two issuers cannot be confused.
func (v validator) validateApart(name, other string) {
	a, b := v.config.Auth.JWT[name], v.config.Auth.JWT[other]
	v.wrongIf(a.Issuer != "" && a.Issuer == b.Issuer, authJWTPrefix+name+".issuer", "is also the issuer of %s; list an issuer only "+
		"once", other)
	v.wrongIf(strings.HasPrefix(a.UserPrefix, b.UserPrefix) || strings.HasPrefix(b.UserPrefix, a.UserPrefix),
		authJWTPrefix+name+".user_prefix",
		"is %s, and that of %s is %s: a user of one could be taken for a user of the other. Give each issuer a prefix that does not "+
			"begin with another's, such as %s:", quote(a.UserPrefix), other, quote(b.UserPrefix), name)
}

func (v validator) validateScopes(key string, names []string) {
	if scopes, _, err := auth.ParseAccess(names); err != nil {
		v.bad(key, "%s: %v.", key, err)
	} else if scopes == 0 {
		is := "is missing"
		if len(names) > 0 {
			is = "has only scopes for tools, which open no endpoint"
		}
		v.wrong(key, "%s; choose from %s", is, strings.Join(auth.ScopeNames(), ", "))
	}
}

func (v validator) validateLimits(prefix string, a AuthLimits) {
	for _, limit := range []struct {
		name string
		most float64
	}{{"new_per_second", a.NewPerSecond}, {"minutes_per_day", a.MinutesPerDay}, {"cost_per_day", a.CostPerDay}} {
		v.wrongIf(limit.most < 0 || math.IsNaN(limit.most) || math.IsInf(limit.most, 0), prefix+limit.name, "must be 0 for no limit, "+
			"or more, not %v", limit.most)
	}
}

// failed adds an error about a setting, if there is one.
func (v validator) failed(key string, err error) {
	v.wrongIf(err != nil, key, "%v", err)
}

// wrong adds a problem of a setting. The format continues a sentence that starts with the key.
func (v validator) wrong(key, format string, args ...any) {
	v.bad(key, "%s "+format+".", append([]any{key}, args...)...)
}

func (v validator) wrongIf(is bool, key, format string, args ...any) {
	if is {
		v.wrong(key, format, args...)
	}
}
