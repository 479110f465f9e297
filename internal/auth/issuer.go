package auth

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"

	"voicegw/internal/user"
)

// Issuer describes an identity provider whose tokens are accepted: JWTs (RFC 7519) that it has
// signed. Exactly one of JWKS, Discover, KeySet and Secret is set.
type Issuer struct {
	// Name is its name in the configuration.
	Name string
	// Issuer is the claim iss, exactly.
	Issuer string
	// Audience are the values of the claim aud of which a token must have one. It is required: a token
	// for another service must open nothing here.
	Audience []string
	// Algorithms are those that may sign, of [Algorithms]. Empty means [DefaultAlgorithms], and HS256
	// for a Secret.
	Algorithms []string

	// JWKS is the address of its public keys.
	JWKS string
	// Discover says that the issuer itself tells the address of its keys.
	Discover bool
	// KeySet holds its public keys, as a set of JSON Web Keys or in PEM.
	KeySet []byte
	// Secret is what it signs with (HS256, HS384, HS512), if this gateway shares it.
	Secret []byte

	// Type is the type that the header of a token must have (typ), such as at+jwt; empty means any.
	Type string
	// UserClaim is the claim that names the user; empty means sub. UserPrefix is put before it, so that
	// the users of several issuers stay apart.
	UserClaim, UserPrefix string
	// ScopesClaim is the claim that holds the token's scopes, as a list or as words in a text; empty
	// means that a token has all of Scopes.
	ScopesClaim string
	// Scopes and Grants are the most that a token can have. Each of Grants is a [scope.ValidGrant].
	Scopes Scopes
	Grants []string
	// Leeway is how much the clocks may differ.
	Leeway time.Duration
	// Limits are those of each user; Owner says who is responsible for the issuer.
	Limits Limits
	Owner  string
}

// DefaultAlgorithms are those of keys that are public.
var DefaultAlgorithms = []string{"RS256", "ES256", "EdDSA"}

// Algorithms are those that may be configured: of public keys, and of a secret.
var (
	PublicAlgorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
	SecretAlgorithms = []string{"HS256", "HS384", "HS512"}
)

// MinSecret is the length of the shortest Issuer.Secret, in bytes (RFC 7518, section 3.2).
const MinSecret = 32

// keyUsers begins the users that stand for API keys, which no token may name.
const keyUsers = "key:"

// issuer checks the tokens of an Issuer. Its methods may be used concurrently.
type issuer struct {
	// Fixed after newIssuer.
	Issuer
	mark   string
	parser *jwt.Parser
	sole   bool // there is one key only, which needs no kid
	key    func(ctx context.Context) jwt.Keyfunc
	remote *remoteKeys // nil unless the keys are fetched
	fixed  []string    // the marks of the keys, unless they are fetched
}

// newIssuer makes an issuer. close must be called.
func newIssuer(o Issuer, next http.RoundTripper, logger *slog.Logger) (*issuer, error) {
	i := &issuer{Issuer: o, mark: mark(sha256.Sum256([]byte(o.Issuer)))}
	algorithms := o.Algorithms
	switch {
	case len(algorithms) > 0:
	case len(o.Secret) > 0:
		algorithms = SecretAlgorithms[:1]
	default:
		algorithms = DefaultAlgorithms
	}
	allowed := PublicAlgorithms
	if len(o.Secret) > 0 {
		allowed = SecretAlgorithms
	}
	for _, alg := range algorithms {
		if !slices.Contains(allowed, alg) {
			return nil, fmt.Errorf("auth: the issuer %s cannot use the algorithm %.40q with its kind of keys", o.Name, alg)
		}
	}
	if o.Issuer == "" || len(o.Audience) == 0 || slices.Contains(o.Audience, "") {
		return nil, fmt.Errorf("auth: the issuer %s needs its name and an audience", o.Name)
	}
	i.parser = jwt.NewParser(jwt.WithValidMethods(algorithms), jwt.WithIssuer(o.Issuer), jwt.WithAudience(o.Audience...),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(o.Leeway), jwt.WithStrictDecoding())
	if err := i.readKeys(next, logger.With("issuer", o.Name)); err != nil {
		return nil, err
	}
	return i, nil
}

// readKeys finds what the issuer's tokens are checked with.
func (i *issuer) readKeys(next http.RoundTripper, logger *slog.Logger) error {
	var options keyfunc.Options
	switch {
	case len(i.Secret) >= MinSecret:
		i.fixed = []string{signerMark(i.Secret)}
		i.key = func(context.Context) jwt.Keyfunc { return func(*jwt.Token) (any, error) { return i.Secret, nil } }
		return nil
	case len(i.KeySet) > 0:
		keys, err := parseKeyFile(i.KeySet)
		if err != nil {
			return fmt.Errorf("auth: the keys of the issuer %s: %w", i.Name, err)
		}
		for _, k := range keys {
			i.fixed = append(i.fixed, signerMark(k.jwk.Key()))
		}
		if len(keys) == 1 && keys[0].unnamed {
			i.sole, i.key = true, func(context.Context) jwt.Keyfunc {
				return func(*jwt.Token) (any, error) { return keys[0].jwk.Key(), nil }
			}
			return nil
		}
		if options.Storage, err = fixedKeys(keys); err != nil {
			return fmt.Errorf("auth: the keys of the issuer %s: %w", i.Name, err)
		}
	case i.Discover:
		i.remote = fetchKeys(i.Issuer.Issuer, true, next, logger)
		options.Storage = i.remote
	case i.JWKS != "":
		i.remote = fetchKeys(i.JWKS, false, next, logger)
		options.Storage = i.remote
	default:
		return fmt.Errorf("auth: the issuer %s has no keys, or a secret of fewer than %d bytes", i.Name, MinSecret)
	}
	keys, err := keyfunc.New(options)
	if err != nil {
		return fmt.Errorf("auth: the keys of the issuer %s: %w", i.Name, err)
	}
	i.key = keys.KeyfuncCtx
	return nil
}

// has reports whether one of the issuer's keys has a mark. While the keys cannot be fetched, none is known to
// be withdrawn.
func (i *issuer) has(mark string) bool {
	if i.remote != nil {
		return i.remote.has(mark)
	}
	return slices.Contains(i.fixed, mark)
}

// signerMark returns the mark of a key that checks tokens: a public key of those that package auth reads, or a
// secret.
func signerMark(key any) string {
	material, secret := key.([]byte)
	if !secret {
		der, err := x509.MarshalPKIXPublicKey(key)
		if err != nil {
			panic(err) // it was read from a set of keys that signs has checked
		}
		material = der
	}
	return mark(sha256.Sum256(material))
}

func (i *issuer) close() {
	if i.remote != nil {
		i.remote.close()
	}
}

// issuerOf returns the issuer that a token names. Nothing has been checked yet.
func issuerOf(token string) (string, bool) {
	_, rest, _ := strings.Cut(token, ".")
	payload, _, ok := strings.Cut(rest, ".")
	if !ok {
		return "", false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(payload)
	var claims struct {
		Issuer string `json:"iss"`
	}
	if err != nil || json.Unmarshal(raw, &claims) != nil {
		return "", false
	}
	return claims.Issuer, true
}

// The errors of a token beyond those of the library.
var (
	errCritical = errors.New("it has critical extensions (crit), and none is known here")
	errNoKid    = errors.New("it has no kid")
	errType     = errors.New("it is of another type (typ)")
	errUser     = errors.New("it names no user that can be used")
)

// check returns the principal of a token. The error is not for clients: it says what is wrong, or
// wraps errKeysAway.
func (i *issuer) check(ctx context.Context, token string) (Principal, error) {
	claims := jwt.MapClaims{}
	var signer any
	_, err := i.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (key any, err error) {
		if err := i.header(t.Header); err != nil {
			return nil, err
		}
		signer, err = i.key(ctx)(t)
		return signer, err
	})
	if err != nil {
		return Principal{}, err
	}
	who, err := i.user(claims)
	if err != nil {
		return Principal{}, err
	}
	expires, err := claims.GetExpirationTime()
	if err != nil {
		return Principal{}, err
	}
	scopes, grants := i.access(claims)
	return Principal{
		Kind: KindJWT, ID: i.id(who), Name: i.Name, User: who, Owner: i.Owner,
		Scopes: scopes, Grants: grants, Mark: i.mark + signerSeparator + signerMark(signer), Limits: i.Limits, Expires: expires.UTC(),
	}, nil
}

// id is the ID of the principal of a user.
func (i *issuer) id(who user.User) string { return "jwt:" + i.Name + ":" + who.String() }

// header checks what the library does not.
func (i *issuer) header(h map[string]any) error {
	if _, critical := h["crit"]; critical {
		return errCritical
	}
	kid, _ := h["kid"].(string)
	if kid == "" && len(i.Secret) == 0 && !i.sole {
		return errNoKid // the library would try each key
	}
	typ, _ := h["typ"].(string)
	if i.Type != "" && !strings.EqualFold(strings.TrimPrefix(strings.ToLower(typ), "application/"), i.Type) {
		return errType
	}
	return nil
}

// user returns the user that a token names.
func (i *issuer) user(claims jwt.MapClaims) (user.User, error) {
	claim := i.UserClaim
	if claim == "" {
		claim = "sub"
	}
	name, _ := claims[claim].(string)
	if name == "" {
		return user.User{}, errUser
	}
	who, err := user.Parse(i.UserPrefix + name)
	if err != nil || strings.HasPrefix(who.String(), keyUsers) {
		return user.User{}, errors.Join(errUser, err)
	}
	return who, nil
}

// access returns the scopes of a token, and its grants in the form of Principal.Grants. Words that are
// neither here are another service's.
func (i *issuer) access(claims jwt.MapClaims) (Scopes, string) {
	if i.ScopesClaim == "" {
		return i.Scopes, strings.Join(i.Grants, " ")
	}
	var set Scopes
	var held []string
	add := func(word string) {
		if s, ok := ParseScope(word); ok {
			set |= s
		}
		held = append(held, word)
	}
	switch claim := claims[i.ScopesClaim].(type) {
	case string: // RFC 8693, section 4.2
		for word := range strings.FieldsSeq(claim) {
			add(word)
		}
	case []any:
		for _, one := range claim {
			if word, ok := one.(string); ok {
				add(word)
			}
		}
	}
	granted := slices.DeleteFunc(slices.Clone(i.Grants), func(grant string) bool { return !slices.Contains(held, grant) })
	return set & i.Scopes, strings.Join(granted, " ")
}

// reasonOf returns why a token was refused, as a word.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, jwt.ErrTokenMalformed):
		return ReasonForm
	case errors.Is(err, jwt.ErrTokenExpired):
		return ReasonExpired
	case errors.Is(err, jwt.ErrTokenNotValidYet), errors.Is(err, jwt.ErrTokenUsedBeforeIssued):
		return ReasonEarly
	default:
		return ReasonToken
	}
}
