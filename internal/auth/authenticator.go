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

// Key describes an API key: all but its secret.
type Key struct {
	// ID is the part of the key by which it is found, Name its name in the configuration.
	ID, Name string
	Hash     KeyHash
	Scopes   Scopes
	// Grants are its scopes for tools: each is a [scope.ValidGrant].
	Grants []string
	// User is the only user for whom the key speaks; zero for a key that is bound to none.
	User   user.User
	Owner  string
	Limits Limits
	// Expires is when the key ends; zero if it does not.
	Expires time.Time
}

// Options configure an Authenticator.
type Options struct {
	// OperatorKey is the operators' key; empty means that no such key exists.
	OperatorKey string
	Keys        []Key
	Issuers     []Issuer
	// Exposed says that others than this machine's programs can reach the gateway. It matters only
	// without Keys and Issuers: whoever comes without credentials is then KindOpen, else KindLocal.
	Exposed bool
	// EnforceExpiry says that a session ends when the credentials end with which its client was let in.
	EnforceExpiry bool
	// Transport fetches the keys of issuers; nil means the common one.
	Transport http.RoundTripper
	// Logger is told when keys cannot be fetched. Nil means no logging.
	Logger *slog.Logger
}

// Authenticator knows whom the gateway lets in. It never changes, except that it fetches the keys of
// issuers; another configuration is another Authenticator, see [Current]. Its methods may be used
// concurrently.
type Authenticator struct {
	// Fixed after New.
	operator        KeyHash
	operatorMark    string             // empty if there is no operators' key
	keys            map[string]Key     // by id
	issuers         map[string]*issuer // by the claim iss
	unauthenticated Principal
	enforceExpiry   bool
}

// New returns an Authenticator. It does not wait for the keys of issuers. Close must be called. The
// error says which option cannot be used.
func New(o Options) (*Authenticator, error) {
	logger := o.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	a := &Authenticator{
		operator: sha256.Sum256([]byte(o.OperatorKey)), operatorMark: slowMark(o.OperatorKey),
		keys: map[string]Key{}, issuers: map[string]*issuer{}, enforceExpiry: o.EnforceExpiry,
	}
	for _, k := range o.Keys {
		if _, twice := a.keys[k.ID]; twice || !ValidKeyID(k.ID) {
			return nil, fmt.Errorf("auth: the key %s has an id that is invalid, or another key's: %.40q", k.Name, k.ID)
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

// Close ends what fetches the keys of issuers. Requests that are being checked may go on.
func (a *Authenticator) Close() {
	for _, i := range a.issuers {
		i.close()
	}
}

// Required reports whether everybody must show credentials: as soon as there is a key or an issuer.
func (a *Authenticator) Required() bool { return len(a.keys)+len(a.issuers) > 0 }

// HasOperators reports whether there is a key for operators.
func (a *Authenticator) HasOperators() bool { return a.operatorMark != "" }

// Unauthenticated returns the principal of a caller without credentials; the zero value if credentials are required.
func (a *Authenticator) Unauthenticated() Principal { return a.unauthenticated }

// Away returns the names of the issuers whose tokens cannot be checked at the moment, because their
// keys could not be fetched.
func (a *Authenticator) Away() []string {
	var names []string
	for _, i := range a.issuers {
		if i.remote != nil && !i.remote.ready() {
			names = append(names, i.Name)
		}
	}
	return names
}

// RefusedError says why credentials were refused. It is for the log: a client must not learn which
// part of what it shows is right.
type RefusedError struct {
	// Reason is one of a fixed set of words, so that it may be counted.
	Reason string
	// Err has more; it may be nil. It holds no secret.
	Err error
}

// Error describes the error.
func (e *RefusedError) Error() string { return "auth: refused: " + e.Reason }

// Unwrap returns what else is known.
func (e *RefusedError) Unwrap() error { return e.Err }

// The reasons of a RefusedError.
const (
	ReasonForm    = "form"    // nothing that this gateway knows looks like this
	ReasonKey     = "key"     // no such API key, or another secret
	ReasonExpired = "expired" // a key or a token has ended
	ReasonEarly   = "early"   // a token does not count yet
	ReasonIssuer  = "issuer"  // a token of an issuer that is not configured
	ReasonToken   = "token"   // a token that is invalid for another reason
)

// ErrAway is wrapped where credentials cannot be checked at the moment, and may be valid.
var ErrAway = errors.New("auth: credentials cannot be checked at the moment")

// Check returns the principal of a secret, which [ParseBearer] has returned. The error is a
// [*RefusedError], or wraps [ErrAway]. It may wait a few seconds for the keys of an issuer, until ctx
// is done.
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

// isOperator compares hashes, so that the comparison takes the same time for every secret of every
// length.
func (a *Authenticator) isOperator(secret string) bool {
	sum := sha256.Sum256([]byte(secret))
	return a.HasOperators() && subtle.ConstantTimeCompare(sum[:], a.operator[:]) == 1
}

// operators returns the principal of the operators' key.
func (a *Authenticator) operators() Principal {
	return Principal{Kind: KindOperator, ID: string(KindOperator), Scopes: AllScopes, Mark: a.operatorMark}
}

// checkKey finds a key by its id. A key that does not exist is compared as well, and with the same
// answer, so that nobody learns which ids there are.
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

// principal returns the key's principal.
func (k Key) principal() Principal {
	return Principal{
		Kind: KindKey, ID: "key:" + k.ID, Name: k.Name, User: k.User, Owner: k.Owner,
		Scopes: k.Scopes, Grants: strings.Join(k.Grants, " "), Mark: mark(k.Hash), Limits: k.Limits, Expires: k.Expires,
	}
}

// markBytes is how much of a hash a Principal's Mark has: 64 bits tell credentials apart, and are too
// little of the hash to try secrets against.
const markBytes = 8

func mark(h KeyHash) string { return hex.EncodeToString(h[:markBytes]) }

// slowMark is the mark of a secret that a person may have chosen: each guess costs 10,000 rounds of SHA-256
// (PBKDF2, RFC 8018, section 5.2). It is empty for an empty secret.
func slowMark(secret string) string {
	if secret == "" {
		return ""
	}
	key, err := pbkdf2.Key(sha256.New, secret, []byte("voicegw: the mark of the operators' key"), 10_000, markBytes)
	if err != nil {
		panic(err) // only a length that FIPS 140 forbids is an error
	}
	return hex.EncodeToString(key)
}

// checkToken checks a JWT.
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

// Find returns the principal with that ID, as it is configured now: of an API key, of a user of an
// issuer, or of those who need no credentials. ok is false if it does not exist any more. A user's scopes
// are the most that a token can have.
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
				return Principal{Kind: KindJWT, ID: id, Name: name, User: named, Owner: i.Owner, Scopes: i.Scopes, Mark: i.mark, Limits: i.Limits}, true
			}
		}
	case KindOperator:
		return a.operators(), a.HasOperators()
	case KindConsole:
		by, known := a.Find(cmp.Or(rest, string(KindOperator))) // an older version has not recorded who it was
		return ConsoleOf(by), known && by.May(ScopeAdmin)
	case KindLocal, KindOpen:
		return a.unauthenticated, a.unauthenticated.ID == id
	}
	return Principal{}, false
}

// Admits reports whether a principal that was let in before would be let in now: it is not revoked, and its
// key has not expired. A ticket, and the token of a console, count for as long as the principal that made them
// is let in.
func (a *Authenticator) Admits(p Principal, now time.Time) bool {
	found, _ := a.Find(p.ID)
	return !a.Revoked(p) && (p.ID == "" || found.Expires.IsZero() || now.Before(found.Expires))
}

// Revoked reports whether a principal that was let in before has lost its credentials: its key or its issuer is
// not configured any more or is another one under the same id, the issuer has withdrawn the key that signed the
// token, or what is left has another user or lacks the scope. A session that it runs may be ended.
func (a *Authenticator) Revoked(p Principal) bool {
	if p.ID == "" {
		return false // no credentials are known
	}
	found, ok := a.Find(p.ID)
	return !ok || found.User != p.User && p.Kind != KindTicket || !SameMark(found.Mark, p.Mark) || !found.May(opensWith(p.Kind)) || !a.signs(p)
}

// opensWith returns the scopes of which a principal of a kind needs one to go on with what it has begun: a voice
// session, or a ticket, which a tool of a conversation in text may have made as well.
func opensWith(k Kind) Scopes {
	if k == KindTicket {
		return ScopeTickets | ScopeVoice | ScopeChat
	}
	return ScopeVoice
}

// signs reports whether the issuer of a principal still has the key that signed its token, as far as it is
// known. Other principals have none.
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

// signerSeparator stands in the Mark of a token between that of its issuer and that of the key that signed it.
const signerSeparator = "."

// SameMark reports whether two marks can be of the same credentials. Where one is not known, as in what an
// older version has written, they can. Tokens of an issuer are the same whatever key of the issuer signed them.
func SameMark(a, b string) bool {
	a, _, _ = strings.Cut(a, signerSeparator)
	b, _, _ = strings.Cut(b, signerSeparator)
	return a == b || a == "" || b == ""
}

// Lapses returns when a session of p must end because the credentials end with which its client was let
// in; zero if it goes on. Those of a key end as its configuration says now.
func (a *Authenticator) Lapses(p Principal) time.Time {
	if !a.enforceExpiry {
		return time.Time{}
	}
	if found, ok := a.Find(p.ID); ok && strings.HasPrefix(p.ID, string(KindKey)+":") {
		return found.Expires
	}
	return p.Expires
}

// Operators returns a Current whose only credentials are the operators' key; empty means none.
func Operators(key string) *Current {
	a, err := New(Options{OperatorKey: key})
	if err != nil {
		panic(err) // only keys and issuers can be wrong, and it has neither
	}
	return Only(a)
}

// Current holds the Authenticator that is in use. The zero Current holds none. It may be used
// concurrently.
type Current struct{ in atomic.Pointer[Authenticator] }

// Only returns a Current that holds a.
func Only(a *Authenticator) *Current {
	c := &Current{}
	c.in.Store(a)
	return c
}

// Get returns the Authenticator in use.
func (c *Current) Get() *Authenticator { return c.in.Load() }

// Admits is Authenticator.Admits of the one in use.
func (c *Current) Admits(p Principal, now time.Time) bool { return c.Get().Admits(p, now) }

// Revoked is Authenticator.Revoked of the one in use.
func (c *Current) Revoked(p Principal) bool { return c.Get().Revoked(p) }

// Lapses is Authenticator.Lapses of the one in use.
func (c *Current) Lapses(p Principal) time.Time { return c.Get().Lapses(p) }

// Swap puts another one in its place, and returns the one before. Requests that are being checked
// finish with that one; it may be closed at once.
func (c *Current) Swap(a *Authenticator) *Authenticator { return c.in.Swap(a) }
