package webhook

import (
	"context"

	"voicegw/store"
)

// Kept returns the Queue that the store keeps.
func Kept(in *store.Webhooks) Queue { return kept{in} }

type kept struct{ *store.Webhooks }

// Take implements Queue.
func (k kept) Take(ctx context.Context, receiver string) (Taken, error) {
	t, err := k.Webhooks.Take(ctx, receiver)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the store
	}
	return taken{t}, nil
}

type taken struct{ *store.Taken }

// Event implements Taken.
func (t taken) Event() (store.Webhook, int) { return t.Webhook, t.Tries }
