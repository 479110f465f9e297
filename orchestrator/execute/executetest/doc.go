// Package executetest has a ledger and a place for questions in memory, for tests of
// what stands on package execute. Their clock is time.Now, so they live in a synctest
// bubble, and a hook of theirs delays, watches or fails whatever a test wants.
package executetest

import "context"

// Op is a method of the Ledger or the Confirmations.
type Op string

// The methods.
const (
	Reserve Op = "reserve"
	Finish  Op = "finish"
	Release Op = "release"
	Create  Op = "create"
	Get     Op = "get"
	Resolve Op = "resolve"
	Settle  Op = "settle"
)

// Before is called before a method does anything, by whoever called it, with the key of
// the entry, the token of the question or, of Settle, its reference. An error of it is that of the method, which
// then does nothing.
type Before func(ctx context.Context, op Op, key string) error

// allow calls the hook if there is one.
func (b Before) allow(ctx context.Context, op Op, key string) error {
	if b == nil {
		return ctx.Err()
	}
	if err := b(ctx, op, key); err != nil {
		return err
	}
	return ctx.Err()
}
