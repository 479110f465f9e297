package chat

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync"

	"voicegw/audit"
)

// undelivered are the audit's records of answers that the model has not been given yet: a
// record is written when the request that holds the answer is, or when it is known that
// there will be none. It may be used by any number of goroutines.
type undelivered struct {
	mu      sync.Mutex // guards the following field
	records []audit.Record
}

func (u *undelivered) add(r audit.Record) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.records = append(u.records, r)
}

// take returns the records, and forgets them.
func (u *undelivered) take() []audit.Record {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := u.records
	u.records = nil
	return all
}

// delivered audits the answers that a request has given to the model.
func (t *turn) delivered() {
	for _, r := range t.fresh.take() {
		t.audit(r)
	}
}

// undeliver audits the answers that no request will give to the model.
func (t *turn) undeliver(ctx context.Context) {
	why := "not_sent"
	if t.waits {
		why = "held" // until the client brings the answers of its own tools
	}
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errTurnTime) {
		why = "client_gone"
	}
	for _, r := range t.fresh.take() {
		r.Delivered, r.NotDelivered = false, why
		t.audit(r)
	}
}

// complete asks the model. What was answered to its calls is delivered once the request is
// written; a model without HTTP shows that by its answer.
func (t *turn) complete(ctx context.Context, p Prompt, delta func(string)) (Reply, error) {
	if err := ctx.Err(); err != nil {
		return Reply{}, err // nobody is left who would read the answer
	}
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(w httptrace.WroteRequestInfo) {
		if w.Err == nil {
			t.delivered()
		}
	}})
	reply, err := t.a.opts.Model.Complete(traced, p, func(s string) {
		t.delivered()
		delta(s)
	})
	if err == nil {
		t.delivered()
	}
	return reply, err
}
