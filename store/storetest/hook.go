// Package storetest has in-memory parts of the store for tests: a ledger, confirmations and usage. They use time.Now, so
// they work in synctest. A hook can delay, observe or fail the operations of the ledger and the confirmations.
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

// Before is called at the start of each operation, on the caller's goroutine. key is the ledger's key, the
// confirmation's token or, for Settle, its reference. The operation returns Before's error without any effect.
type Before func(ctx context.Context, op Op, key string) error

func (b Before) allow(ctx context.Context, op Op, key string) error {
	if b == nil {
		return ctx.Err()
	}
	if err := b(ctx, op, key); err != nil {
		return err
	}
	return ctx.Err()
}
