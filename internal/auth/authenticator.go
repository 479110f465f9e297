// Package auth converts credentials to a [Principal]. Package gateway has the table of routes with their scopes.
package auth

import (
	"cmp"
	"context"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"voicegw/internal/user"
)

// Key describes an API key without its secret.
type Key struct {
	// ID is the key's public part, Name its name in the configuration.
	ID, Name string
	Hash     KeyHash
	Scopes   Scopes
	Grants   []string
	User     user.User
	Owner    string
	Limits   Limits
	Expires  time.Time
}

// Options configure an Authenticator.
type Options struct {
	OperatorKey string
	Keys        []Key
	Issuers     []Issuer
	// Exposed: without Keys and Issuers, clients are KindOpen, otherwise KindLocal.
	Exposed       bool
	EnforceExpiry bool
	Transport     http.RoundTripper
	Logger        *slog.Logger
}

// Authenticator authenticates clients. A new configuration is a new one, see [Current]. Safe for concurrent use.
type Authenticator struct {
	operator        KeyHash
	operatorMark    string             // empty without an operators' key
	keys            map[string]Key     // by ID
	issuers         map[string]*issuer // by the claim iss
	unauthenticated Principal
	enforceExpiry   bool
}

// New doesn't wait for the issuers' keys. The caller must call Close. The error names the invalid option.
func New(o Options) (*Authenticator, error) {
	logger := cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	a := &Authenticator{
		operator: sha256.Sum256([]byte(o.OperatorKey)), operatorMark: slowMark(o.OperatorKey),
		keys: map[string]Key{}, issuers: map[string]*issuer{}, enforceExpiry: o.EnforceExpiry,
	}
	for _, k := range o.Keys {
		if _, twice := a.keys[k.ID]; twice || !ValidKeyID(k.ID) {
			return nil, fmt.Errorf("auth: the key %s has an invalid or duplicate id: %.40q", k.Name, k.ID)
		}
		a.keys[k.ID] = k
	}
	for _, one := range o.Issuers {
		if a.issuers[one.Issuer] != nil {
			a.Close()
			return nil, fmt.Errorf("auth: two issuers have the name %.40q", one.Issuer)
		}
		i, err := newIssuer(one, o.Transport, logger)
		if err != nil {
			a.Close()
			return nil, err
		}
		a.issuers[one.Issuer] = i
	}
	if !a.Required() {
		kind := KindLocal
		if o.Exposed {
			kind = KindOpen
		}
		a.unauthenticated = Principal{Kind: kind, ID: string(kind), Scopes: ScopeVoice | ScopeChat}
	}
	return a, nil
}

// Close stops fetching keys. Checks in progress may continue.
func (a *Authenticator) Close() {
	for _, i := range a.issuers {
		i.close()
	}
}

// Required reports whether credentials are required: if any key or issuer is configured.
func (a *Authenticator) Required() bool { return len(a.keys)+len(a.issuers) > 0 }

// HasOperators reports whether there is an operators' key.
func (a *Authenticator) HasOperators() bool { return a.operatorMark != "" }

// Unauthenticated returns the principal of a client without credentials; zero if credentials are required.
func (a *Authenticator) Unauthenticated() Principal { return a.unauthenticated }

// Away returns the names of issuers whose keys could not be fetched, so that their tokens can't be checked.
func (a *Authenticator) Away() []string {
	var names []string
	for _, i := range a.issuers {
		if i.remote != nil && !i.remote.ready() {
			names = append(names, i.Name)
		}
	}
	return names
}

// RefusedError is the reason for rejecting credentials. It is for the log: clients must not learn which part is valid.
type RefusedError struct {
	Reason string
	Err    error
}

func (e *RefusedError) Error() string { return "auth: refused: " + e.Reason }

func (e *RefusedError) Unwrap() error { return e.Err }

// The reasons of a RefusedError.
const (
	ReasonForm    = "form"    // unknown form of credentials
	ReasonKey     = "key"     // unknown API key or wrong secret
	ReasonExpired = "expired" // expired key or token
	ReasonEarly   = "early"   // token not valid yet
	ReasonIssuer  = "issuer"  // token of an unknown issuer
	ReasonToken   = "token"   // token invalid for another reason
)

// ErrAway is wrapped when credentials can't be checked now but may be valid.
var ErrAway = errors.New("auth: cannot check credentials now")

// Check returns the principal of a secret. The error is a [*RefusedError] or wraps [ErrAway]. It may wait seconds for
// keys.
func (a *Authenticator) Check(ctx context.Context, secret string) (Principal, error) {
	if a.isOperator(secret) {
		return a.operators(), nil
	}
	if strings.HasPrefix(secret, Prefix) {
		return a.checkKey(secret, time.Now())
	}
	if len(a.issuers) > 0 && strings.Count(secret, ".") == 2 {
		return a.checkToken(ctx, secret)
	}
	return Principal{}, &RefusedError{Reason: ReasonForm}
}

// isOperator compares hashes, so that the time doesn't depend on the secret.
func (a *Authenticator) isOperator(secret string) bool {
	sum := sha256.Sum256([]byte(secret))
	return a.HasOperators() && subtle.ConstantTimeCompare(sum[:], a.operator[:]) == 1
}

func (a *Authenticator) operators() Principal {
	return Principal{Kind: KindOperator, ID: string(KindOperator), Scopes: AllScopes, Mark: a.operatorMark}
}

// checkKey takes the same time and gives the same error for an unknown ID, so that IDs can't be probed.
func (a *Authenticator) checkKey(text string, now time.Time) (Principal, error) {
	shown, err := ParseAPIKey(text)
	if err != nil {
		return Principal{}, &RefusedError{Reason: ReasonForm, Err: err}
	}
	k, known := a.keys[shown.ID()]
	hash := shown.Hash()
	if subtle.ConstantTimeCompare(hash[:], k.Hash[:]) != 1 || !known {
		return Principal{}, &RefusedError{Reason: ReasonKey}
	}
	if !k.Expires.IsZero() && !now.Before(k.Expires) {
		return Principal{}, &RefusedError{Reason: ReasonExpired}
	}
	return k.principal(), nil
}

func (k Key) principal() Principal {
	return Principal{
		Kind: KindKey, ID: "key:" + k.ID, Name: k.Name, User: k.User, Owner: k.Owner,
		Scopes: k.Scopes, Grants: strings.Join(k.Grants, " "), Mark: mark(k.Hash), Limits: k.Limits, Expires: k.Expires,
	}
}

// markBytes: 64 bits distinguish credentials but are too few to test guesses against.
const markBytes = 8

func mark(h KeyHash) string { return hex.EncodeToString(h[:markBytes]) }

// slowMark is the mark of a secret that a person may have chosen: each guess costs 10,000 rounds (PBKDF2, RFC 8018,
// 5.2).
func slowMark(secret string) string {
	if secret == "" {
		return ""
	}
	key, err := pbkdf2.Key(sha256.New, secret, []byte("voicegw: the mark of the operators' key"), 10_000, markBytes)
	if err != nil {
		panic(err) // only for lengths that FIPS 140 forbids
	}
	return hex.EncodeToString(key)
}

func (a *Authenticator) checkToken(ctx context.Context, token string) (Principal, error) {
	name, ok := issuerOf(token)
	if !ok {
		return Principal{}, &RefusedError{Reason: ReasonForm}
	}
	i := a.issuers[name]
	if i == nil {
		return Principal{}, &RefusedError{Reason: ReasonIssuer}
	}
	p, err := i.check(ctx, token)
	switch {
	case err == nil:
		return p, nil
	case errors.Is(err, errKeysAway), ctx.Err() != nil:
		return Principal{}, fmt.Errorf("%w: the issuer %s: %w", ErrAway, i.Name, err)
	default:
		return Principal{}, &RefusedError{Reason: reasonOf(err), Err: err}
	}
}

// Find returns the configured principal with an ID; ok is false if it no longer exists. A user gets all scopes of
// tokens.
func (a *Authenticator) Find(id string) (p Principal, ok bool) {
	switch kind, rest, _ := strings.Cut(id, ":"); Kind(kind) {
	case KindKey:
		k, known := a.keys[rest]
		return k.principal(), known
	case KindJWT:
		name, who, _ := strings.Cut(rest, ":")
		for _, i := range a.issuers {
			named, err := user.Parse(who)
			if i.Name == name && err == nil {
				return Principal{Kind: KindJWT, ID: id, Name: name, User: named, Owner: i.Owner, Scopes: i.Scopes,
					Mark: i.mark, Limits: i.Limits}, true
			}
		}
	case KindOperator:
		return a.operators(), a.HasOperators()
	case KindConsole:
		by, known := a.Find(cmp.Or(rest, string(KindOperator))) // older versions didn't record the opener
		return ConsoleOf(by), known && by.May(ScopeAdmin)
	case KindLocal, KindOpen:
		return a.unauthenticated, a.unauthenticated.ID == id
	}
	return Principal{}, false
}

// Admits reports whether an earlier principal, such as a ticket's creator, isn't revoked and its key hasn't expired.
func (a *Authenticator) Admits(p Principal, now time.Time) bool {
	found, _ := a.Find(p.ID)
	return !a.Revoked(p) && (p.ID == "" || found.Expires.IsZero() || now.Before(found.Expires))
}

// Revoked reports whether an earlier principal has lost its credentials: key or issuer removed or replaced, signing key
// withdrawn, user or a required scope changed. Its sessions may be ended.
func (a *Authenticator) Revoked(p Principal) bool {
	if p.ID == "" {
		return false // unknown credentials
	}
	found, ok := a.Find(p.ID)
	return !ok || found.User != p.User && p.Kind != KindTicket || !SameMark(found.Mark, p.Mark) ||
		!found.May(opensWith(p.Kind)) || !a.signs(p)
}

// opensWith returns the scopes that let a principal continue a session or use a ticket; any one is enough. A text tool
// may have made the ticket.
func opensWith(k Kind) Scopes {
	if k == KindTicket {
		return ScopeTickets | ScopeVoice | ScopeChat
	}
	return ScopeVoice
}

// signs reports whether a principal's issuer still has the signing key; true for other principals, and while the keys are unknown.
func (a *Authenticator) signs(p Principal) bool {
	kind, rest, _ := strings.Cut(strings.TrimPrefix(p.ID, string(KindConsole)+":"), ":")
	_, signer, known := strings.Cut(p.Mark, signerSeparator)
	if Kind(kind) != KindJWT || !known {
		return true
	}
	name, _, _ := strings.Cut(rest, ":")
	for _, i := range a.issuers {
		if i.Name == name {
			return i.has(signer)
		}
	}
	return false
}

const signerSeparator = "."

// SameMark reports whether two marks may be of the same credentials: an unknown one matches all, signing keys don't
// count.
func SameMark(a, b string) bool {
	a, _, _ = strings.Cut(a, signerSeparator)
	b, _, _ = strings.Cut(b, signerSeparator)
	return a == b || a == "" || b == ""
}

// Lapses returns when p's sessions must end; zero means never. For a key, the current configuration counts.
func (a *Authenticator) Lapses(p Principal) time.Time {
	if !a.enforceExpiry {
		return time.Time{}
	}
	if found, ok := a.Find(p.ID); ok && strings.HasPrefix(p.ID, string(KindKey)+":") {
		return found.Expires
	}
	return p.Expires
}

// Operators returns a Current with only the operators' key; "" means none.
func Operators(key string) *Current {
	a, err := New(Options{OperatorKey: key})
	if err != nil {
		panic(err) // only keys and issuers can be invalid
	}
	return Only(a)
}

// Current holds the Authenticator in use. The zero Current holds none. It may be used concurrently.
type Current struct{ in atomic.Pointer[Authenticator] }

// Only returns a Current holding a.
func Only(a *Authenticator) *Current {
	c := &Current{}
	c.in.Store(a)
	return c
}

// Get returns the Authenticator in use.
func (c *Current) Get() *Authenticator { return c.in.Load() }

// Admits calls Authenticator.Admits.
func (c *Current) Admits(p Principal, now time.Time) bool { return c.Get().Admits(p, now) }

// Revoked calls Authenticator.Revoked.
func (c *Current) Revoked(p Principal) bool { return c.Get().Revoked(p) }

// Lapses calls Authenticator.Lapses.
func (c *Current) Lapses(p Principal) time.Time { return c.Get().Lapses(p) }

// Swap returns the previous Authenticator, which may be closed at once: checks in progress still finish.
func (c *Current) Swap(a *Authenticator) *Authenticator { return c.in.Swap(a) }

// maxBearer bounds credentials in bytes; a JWT has up to a few thousand.
const maxBearer = 8 << 10

// The errors of ParseBearer.
var (
	ErrNoCredentials = errors.New("auth: no credentials")
	ErrAmbiguous     = errors.New("auth: more than one Authorization header")
	// ErrBearer: the scheme isn't Bearer, or the rest is not a possible credential.
	ErrBearer = errors.New("auth: not a bearer token")
)

// ParseBearer returns the secret of Authorization (RFC 6750, section 2.1). It may have any visible ASCII characters,
// because the operators' key may.
func ParseBearer(headers []string) (secret string, err error) {
	switch {
	case len(headers) == 0:
		return "", ErrNoCredentials
	case len(headers) > 1:
		return "", ErrAmbiguous
	}
	scheme, secret, _ := strings.Cut(headers[0], " ")
	secret = strings.TrimLeft(secret, " ")
	if !strings.EqualFold(scheme, "Bearer") || secret == "" || len(secret) > maxBearer ||
		strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", ErrBearer
	}
	return secret, nil
}
