package auth

import (
	"cmp"
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

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"

	"voicegw/internal/user"
)

// Issuer is an identity provider of JWTs (RFC 7519), with exactly one of JWKS, Discover, KeySet and Secret.
type Issuer struct {
	Name   string
	Issuer string
	// Audience are the accepted values of the claim aud. Required: tokens for another service must not be accepted.
	Audience []string
	// Algorithms are the accepted ones of [Algorithms]. Empty means [DefaultAlgorithms], or HS256 with Secret.
	Algorithms []string

	JWKS     string
	Discover bool
	KeySet   []byte
	Secret   []byte

	Type string
	// UserClaim is the claim with the user; empty means sub. UserPrefix keeps the users of issuers apart.
	UserClaim, UserPrefix string
	// ScopesClaim is the claim with the scopes, a list or a text; empty gives tokens all of Scopes.
	ScopesClaim string
	// Scopes and Grants are the most that a token can have. Each grant is a [scope.ValidGrant].
	Scopes Scopes
	Grants []string
	Leeway time.Duration
	Limits Limits
	Owner  string
}

// DefaultAlgorithms are the default algorithms for public keys.
var DefaultAlgorithms = []string{"RS256", "ES256", "EdDSA"}

// Algorithms are the supported ones for public keys, and for a secret.
var (
	PublicAlgorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
	SecretAlgorithms = []string{"HS256", "HS384", "HS512"}
)

// MinSecret is the minimum length of Issuer.Secret in bytes (RFC 7518, section 3.2).
const MinSecret = 32

// keyUsers begins the users that represent API keys, which tokens must not name.
const keyUsers = "key:"

type issuer struct {
	Issuer
	mark   string
	parser *jwt.Parser
	only   any // the only key, which needs no kid; nil if there may be several
	key    func(ctx context.Context) jwt.Keyfunc
	remote *remoteKeys // nil for keys that aren't fetched
	fixed  []string    // the marks of keys that aren't fetched
}

// newIssuer returns an issuer. The caller must call close.
func newIssuer(o Issuer, next http.RoundTripper, logger *slog.Logger) (*issuer, error) {
	i := &issuer{Issuer: o, mark: mark(sha256.Sum256([]byte(o.Issuer)))}
	algorithms, allowed := DefaultAlgorithms, PublicAlgorithms
	if len(o.Secret) > 0 {
		algorithms, allowed = SecretAlgorithms[:1], SecretAlgorithms
	}
	if len(o.Algorithms) > 0 {
		algorithms = o.Algorithms
	}
	for _, alg := range algorithms {
		if !slices.Contains(allowed, alg) {
			return nil, fmt.Errorf("auth: the algorithm %.40q does not fit the keys of the issuer %s", alg, o.Name)
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

func (i *issuer) readKeys(next http.RoundTripper, logger *slog.Logger) error {
	var options keyfunc.Options
	switch {
	case len(i.Secret) >= MinSecret:
		i.only, i.fixed = i.Secret, []string{signerMark(i.Secret)}
		return nil
	case len(i.KeySet) > 0:
		keys, err := parseKeyFile(i.KeySet)
		if err != nil {
			return fmt.Errorf("auth: the keys of the issuer %s: %w", i.Name, err)
		}
		for _, k := range keys {
			i.fixed = append(i.fixed, signerMark(k.Key()))
		}
		if hasKid(keys, "") {
			i.only = keys[0].Key()
			return nil
		}
		options.Storage = jwkset.NewMemoryStorage()
		if err := options.Storage.KeyReplaceAll(context.Background(), keys); err != nil {
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

func (i *issuer) has(mark string) bool {
	if i.remote != nil {
		return i.remote.has(mark)
	}
	return slices.Contains(i.fixed, mark)
}

func signerMark(key any) string {
	material, secret := key.([]byte)
	if !secret {
		der, err := x509.MarshalPKIXPublicKey(key)
		if err != nil {
			panic(err) // signs has checked the key
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

// issuerOf returns the issuer that an unverified token claims.
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

// Errors of tokens that the library doesn't detect.
var (
	errCritical = errors.New("it has unsupported critical extensions (crit)")
	errNoKid    = errors.New("it has no kid")
	errType     = errors.New("wrong token type (typ)")
	errUser     = errors.New("it has no valid user")
)

func (i *issuer) check(ctx context.Context, token string) (Principal, error) {
	claims := jwt.MapClaims{}
	var signer any
	_, err := i.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (key any, err error) {
		if err := i.header(t.Header); err != nil {
			return nil, err
		}
		if signer = i.only; signer == nil {
			signer, err = i.key(ctx)(t)
		}
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

func (i *issuer) id(who user.User) string { return "jwt:" + i.Name + ":" + who.String() }

func (i *issuer) header(h map[string]any) error {
	if _, critical := h["crit"]; critical {
		return errCritical
	}
	kid, _ := h["kid"].(string)
	if kid == "" && i.only == nil {
		return errNoKid // the library would try each key
	}
	typ, _ := h["typ"].(string)
	if i.Type != "" && !strings.EqualFold(strings.TrimPrefix(strings.ToLower(typ), "application/"), i.Type) {
		return errType
	}
	return nil
}

func (i *issuer) user(claims jwt.MapClaims) (user.User, error) {
	name, _ := claims[cmp.Or(i.UserClaim, "sub")].(string)
	if name == "" {
		return user.User{}, errUser
	}
	who, err := user.Parse(i.UserPrefix + name)
	if err != nil || strings.HasPrefix(who.String(), keyUsers) {
		return user.User{}, errors.Join(errUser, err)
	}
	return who, nil
}

func (i *issuer) access(claims jwt.MapClaims) (Scopes, string) {
	if i.ScopesClaim == "" {
		return i.Scopes, strings.Join(i.Grants, " ")
	}
	var set Scopes
	var held []string
	add := func(word string) {
		set |= scopeNamed(word)
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
