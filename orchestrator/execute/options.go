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
	Ledger Ledger // prevents repeated side effects. If it is nil, writing tools are refused.
	// If Confirmations is nil, no question can be asked.
	Confirmations Confirmations
	// If Jobs is nil, calls that start jobs are refused.
	Jobs       Jobs
	Life       time.Duration // how long a question can be answered. Zero means setting.QuestionLife.
	Grace      time.Duration // how long Close waits for running tools; zero means 5 s
	RetryAfter time.Duration // the delay before the retry of a call in text mode; zero means 250 ms
	Logger     *slog.Logger  // may be nil
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
