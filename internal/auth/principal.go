package auth

import (
	"context"
	"strings"
	"time"

	"voicegw/internal/user"
)

// Kind says how a principal has shown who it is.
type Kind string

// The kinds. The zero Kind is that of nobody: no credentials were shown, and none were needed.
const (
	KindKey      Kind = "key"      // an API key of the configuration
	KindJWT      Kind = "jwt"      // a token of an identity provider (RFC 7519)
	KindTicket   Kind = "ticket"   // a ticket for one voice session
	KindLocal    Kind = "local"    // nothing: a client of this machine, where no authentication is configured
	KindOpen     Kind = "open"     // nothing: any client, where the operator has given up authentication
	KindOperator Kind = "operator" // the operators' key
	KindConsole  Kind = "console"  // a console that has a token of this gateway
)

// Principal is who sends a request. The zero Principal is nobody. It is a value: it is compared
// with ==, never changes, and may be used concurrently.
type Principal struct {
	Kind Kind
	// ID identifies the principal among all of this gateway, and stays the same when its credentials
	// are renewed: "key:" and the id of an API key; "jwt:", the name of an issuer, ":" and the user; for
	// a ticket, that of the principal that made it; "console:" and that of the principal that opened the
	// console; for the other kinds the kind alone. Limits are counted by it.
	ID string
	// Name is the name of the key or of the issuer in the configuration, so there are only as many as
	// are configured: it may be a metric's label. Empty for the other kinds.
	Name string
	// User is the only user for whom the principal speaks; zero for a principal that is bound to none.
	User user.User
	// Owner says who is responsible for the principal, in the operator's words; it may be empty.
	Owner  string
	Scopes Scopes
	// Grants are its scopes for tools, as words between spaces: [Principal.Granted] has them as a list.
	Grants string
	// Mark tells apart credentials that have had one ID: API keys with the same id, operators' keys, and issuers
	// with the same name, behind which it names the key that signed the token. A ticket and a console have that
	// of the principal that made them. It is no secret. It is empty for kinds whose ID is enough.
	Mark string
	// Limits bound what all requests of this ID may use together.
	Limits Limits
	// Expires is when the credentials end; zero if they do not end by themselves.
	Expires time.Time
}

// Limits bound what one principal may use. A zero field does not limit.
type Limits struct {
	// Sessions is how many voice sessions may run at once.
	Sessions int
	// NewPerSecond is how many voice sessions may begin within a second, on average.
	NewPerSecond float64
	// MinutesPerDay is how long all voice sessions of a day may last together, in minutes.
	MinutesPerDay float64
	// CostPerDay is what models may cost on a day, in US dollars.
	CostPerDay float64
}

// IsZero reports whether p is nobody.
func (p Principal) IsZero() bool { return p == Principal{} }

// Unauthenticated reports whether p has shown no credentials.
func (p Principal) Unauthenticated() bool {
	return p.Kind == "" || p.Kind == KindLocal || p.Kind == KindOpen
}

// May reports whether p has at least one of the scopes, or [Admin], which has all.
func (p Principal) May(any Scopes) bool { return p.Scopes&(any|ScopeAdmin) != 0 }

// Granted returns the scopes for tools that p brings with it, such as kb:staff; nil if it brings no such scope.
func (p Principal) Granted() []string {
	if p.Grants == "" {
		return nil
	}
	return strings.Fields(p.Grants)
}

// Names reports whether p may name the user for whom it speaks. A principal that is bound to a user
// never may.
func (p Principal) Names() bool { return p.User.IsZero() && p.May(ScopeTickets) }

// Self returns the user that p is when it names none: its User, or for an API key that is bound to no
// user a user that stands for the key. It is zero for the other kinds, which are told apart by
// address.
func (p Principal) Self() user.User {
	if p.Kind == KindKey && p.User.IsZero() {
		return user.Must(p.ID)
	}
	return p.User
}

// ConsoleOf returns the principal of a console that by has opened. It may do everything, and ends with by.
func ConsoleOf(by Principal) Principal {
	return Principal{Kind: KindConsole, ID: string(KindConsole) + ":" + by.ID, Scopes: AllScopes, Mark: by.Mark, Expires: by.Expires}
}

// contextKey is the key under which With keeps a principal.
type contextKey struct{}

// With returns a context in which [From] finds p.
func With(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// From returns the principal of a request's context; the zero Principal if it has none.
func From(ctx context.Context) Principal {
	p, _ := ctx.Value(contextKey{}).(Principal)
	return p
}
