// Package storetest has parts of the store in memory, for tests: a ledger, confirmations and usage. They use
// time.Now, so they work in a synctest bubble. A hook can delay, observe or fail each operation of the
// ledger and the confirmations.
package storetest

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

// Before is called at the start of each operation, on the caller's goroutine. key is the key of
// the ledger's entry, the token of the question or, for Settle, its reference. If Before returns
// an error, the operation returns that error and does nothing.
type Before func(ctx context.Context, op Op, key string) error

// allow calls the hook, if it is set.
func (b Before) allow(ctx context.Context, op Op, key string) error {
	if b == nil {
		return ctx.Err()
	}
	if err := b(ctx, op, key); err != nil {
		return err
	}
	return ctx.Err()
}
