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

// Ledger records the deeds of tools that write before they are done; *store.Ledger implements
// it.
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

// Options configure an Executor. The zero value of each field is usable.
type Options struct {
	// Ledger prevents doing a deed twice. If it is nil, tools that write are refused.
	Ledger Ledger
	// Confirmations stores questions to the user. If it is nil, no question can be asked.
	Confirmations Confirmations
	// Jobs does long work. If it is nil, calls that begin some are refused.
	Jobs Jobs
	// Life is how long a question can be answered. Zero means defaults.QuestionLife.
	Life time.Duration
	// Grace is how long Close lets running tools go on. Zero means 5 s.
	Grace time.Duration
	// RetryAfter is the delay before a call in text mode is repeated, once. Zero means 250 ms.
	RetryAfter time.Duration
	// Logger reports what could not be recorded. Nil means no logging.
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
