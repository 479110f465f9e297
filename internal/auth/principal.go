package auth

import (
	"context"
	"strings"
	"time"

	"voicegw/internal/user"
)

// Kind is how a principal was authenticated.
type Kind string

// The kinds. The zero Kind means unauthenticated.
const (
	KindKey      Kind = "key"      // a configured API key
	KindJWT      Kind = "jwt"      // an identity provider's token (RFC 7519)
	KindTicket   Kind = "ticket"   // a ticket for one voice session
	KindLocal    Kind = "local"    // no credentials: a local client, without authentication configured
	KindOpen     Kind = "open"     // no credentials: any client, with authentication disabled
	KindOperator Kind = "operator" // the operators' key
	KindConsole  Kind = "console"  // a console with a token of this gateway
)

// Principal is the sender of a request, comparable with ==. The zero Principal is unauthenticated.
type Principal struct {
	Kind Kind
	// ID stays the same when credentials are renewed: "key:" and the key's ID; "jwt:", the issuer, ":" and the user; a
	// ticket's creator; "console:" and its opener; otherwise the kind. Limits are counted by it.
	ID string
	// Name is the configured name of the key or issuer, so it may be a metric label; otherwise empty.
	Name   string
	User   user.User
	Owner  string
	Scopes Scopes
	Grants string
	// Mark distinguishes successive credentials with one ID; for tokens it includes the signing key's. Tickets and
	// consoles have their creator's. It is not secret.
	Mark    string
	Limits  Limits
	Expires time.Time
}

// Limits are one principal's limits. A zero field means no limit.
type Limits struct {
	Sessions      int
	NewPerSecond  float64
	MinutesPerDay float64
	CostPerDay    float64
}

// IsZero reports whether p is unauthenticated and unknown.
func (p Principal) IsZero() bool { return p == Principal{} }

// Unauthenticated reports whether p showed no credentials.
func (p Principal) Unauthenticated() bool {
	return p.Kind == "" || p.Kind == KindLocal || p.Kind == KindOpen
}

// May reports whether p has at least one of the scopes, or [Admin], which includes all.
func (p Principal) May(any Scopes) bool { return p.Scopes&(any|ScopeAdmin) != 0 }

// Granted returns the tool scopes, such as kb:staff; nil without any.
func (p Principal) Granted() []string {
	if p.Grants == "" {
		return nil
	}
	return strings.Fields(p.Grants)
}

// Names reports whether p may name the user it acts for. A principal with a fixed user may not.
func (p Principal) Names() bool { return p.User.IsZero() && p.May(ScopeTickets) }

// Self returns p's user if it names none, which may represent an API key. It is zero for kinds distinguished by
// address.
func (p Principal) Self() user.User {
	if p.Kind == KindKey && p.User.IsZero() {
		return user.Must(p.ID)
	}
	return p.User
}

// ConsoleOf returns the principal of a console opened by by. It has all scopes and is revoked with by.
func ConsoleOf(by Principal) Principal {
	return Principal{Kind: KindConsole, ID: string(KindConsole) + ":" + by.ID, Scopes: AllScopes, Mark: by.Mark, Expires: by.Expires}
}

type contextKey struct{}

// With returns a context with p for [From].
func With(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// From returns the principal of a request's context, or the zero Principal.
func From(ctx context.Context) Principal {
	p, _ := ctx.Value(contextKey{}).(Principal)
	return p
}
