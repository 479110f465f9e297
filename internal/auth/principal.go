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

// Principal is the sender of a request. The zero Principal is unauthenticated. It is an immutable value, comparable with
// ==.
type Principal struct {
	Kind Kind
	// ID identifies the principal, and stays the same when credentials are renewed: "key:" and an API key's ID; "jwt:",
	// the issuer's name, ":" and the user; a ticket's creator; "console:" and its opener; otherwise the kind alone.
	// Limits are counted by it.
	ID string
	// Name is the configured name of the key or issuer, so it may be a metric label; otherwise empty.
	Name string
	// User is the only user the principal may act for; zero without one.
	User user.User
	// Owner is the responsible person, in the operator's words; may be empty.
	Owner  string
	Scopes Scopes
	// Grants are its tool scopes, separated by spaces; see [Principal.Granted].
	Grants string
	// Mark distinguishes successive credentials with one ID: API keys, operators' keys, and issuers, followed by the
	// mark of the signing key. Tickets and consoles have their creator's. It is not secret. Empty for the other kinds.
	Mark string
	// Limits apply to all requests with this ID together.
	Limits Limits
	// Expires is when the credentials end; zero means never.
	Expires time.Time
}

// Limits are one principal's limits. A zero field means no limit.
type Limits struct {
	// Sessions is the number of concurrent voice sessions.
	Sessions int
	// NewPerSecond is the average number of voice sessions started in a second.
	NewPerSecond float64
	// MinutesPerDay is the total voice time of a day in minutes.
	MinutesPerDay float64
	// CostPerDay is the models' cost of a day in US dollars.
	CostPerDay float64
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

// Self returns p's user if it names none: its User, or a user representing an API key. It is zero for the other kinds,
// which are distinguished by address.
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
