package execute

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"voicegw/config/setting"
	"voicegw/store"
)

// Ledger records side effects before they run; *store.Ledger implements it.
type Ledger interface {
	Reserve(ctx context.Context, r store.Reservation) (e store.Entry, fresh bool, err error)
	Finish(ctx context.Context, e store.Entry, envelope json.RawMessage) error
	Release(ctx context.Context, e store.Entry) error
}

// Confirmations stores questions to the user; *store.Confirmations implements it.
type Confirmations interface {
	Create(ctx context.Context, c store.Confirmation) error
	Named(ctx context.Context, name string) (store.Confirmation, error)
	Resolve(ctx context.Context, token, session string, approved bool, now time.Time) (store.Confirmation, error)
	Settle(ctx context.Context, conversation, session, reference string) error
}

// Options configure an Executor. Zero fields are usable.
type Options struct {
	// Ledger prevents repeated side effects. If it is nil, writing tools are refused.
	Ledger Ledger
	// If Confirmations is nil, no question can be asked.
	Confirmations Confirmations
	// If Jobs is nil, calls that start jobs are refused.
	Jobs Jobs
	// Life is how long a question can be answered. Zero means setting.QuestionLife.
	Life time.Duration
	// Grace is how long Close waits for running tools. Zero means 5 s.
	Grace time.Duration
	// RetryAfter is the delay before the retry of a call in text mode. Zero means 250 ms.
	RetryAfter time.Duration
	// Logger may be nil.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Life = cmp.Or(o.Life, setting.QuestionLife)
	o.Grace = cmp.Or(o.Grace, 5*time.Second)
	o.RetryAfter = cmp.Or(o.RetryAfter, 250*time.Millisecond)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
