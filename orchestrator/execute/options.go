package execute

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"voicegw/config/defaults"
	"voicegw/store"
)

// Ledger is where the deeds of tools that write are entered before they are done;
// *store.Ledger is one.
type Ledger interface {
	Reserve(ctx context.Context, r store.Reservation) (e store.Entry, fresh bool, err error)
	Finish(ctx context.Context, e store.Entry, envelope json.RawMessage) error
	Release(ctx context.Context, e store.Entry) error
}

// Confirmations is where questions to the user are kept; *store.Confirmations is one.
type Confirmations interface {
	Create(ctx context.Context, c store.Confirmation) error
	Named(ctx context.Context, name string) (store.Confirmation, error)
	Resolve(ctx context.Context, token, session string, approved bool, now time.Time) (store.Confirmation, error)
	Settle(ctx context.Context, conversation, session, reference string) error
}

// Options is what an Executor needs. The zero value of each field is useful.
type Options struct {
	// Ledger keeps deeds from being done twice. Nil: tools that write are refused.
	Ledger Ledger
	// Confirmations keeps questions to the user. Nil: none can be asked.
	Confirmations Confirmations
	// Life is how long a question can be answered. Zero means defaults.QuestionLife.
	Life time.Duration
	// Grace is how long tools that run when everything ends may still take. Zero means 5 s.
	Grace time.Duration
	// RetryAfter is how long a call of text mode waits before its one repetition. Zero
	// means 250 ms.
	RetryAfter time.Duration
	// Logger gets a line for what could not be recorded. Nil discards.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&o.Life, defaults.QuestionLife}, {&o.Grace, 5 * time.Second}, {&o.RetryAfter, 250 * time.Millisecond}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
