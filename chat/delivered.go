package chat

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync"
	"time"

	"voicegw/internal/audit"
)

// undelivered holds the audit records of answers that the model has not got yet. A record is
// written when the request with the answer is sent, or when it is known that no request will
// be. It may be used concurrently.
type undelivered struct {
	mu      sync.Mutex // guards the following field
	records []audit.Record
}

func (u *undelivered) add(r audit.Record) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.records = append(u.records, r)
}

// take removes and returns the records.
func (u *undelivered) take() []audit.Record {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := u.records
	u.records = nil
	return all
}

// delivered audits the answers that a request has delivered to the model.
func (t *turn) delivered() {
	for _, r := range t.fresh.take() {
		t.audit(r)
	}
}

// undeliver audits the answers that no request will deliver to the model.
func (t *turn) undeliver(ctx context.Context) {
	why := "not_sent"
	if t.waits {
		why = "held" // until the client brings the answers of its own tools
	}
	if errors.Is(context.Cause(ctx), errLeft) {
		why = "client_gone"
	}
	for _, r := range t.fresh.take() {
		r.Delivered, r.NotDelivered = false, why
		t.audit(r)
	}
}

// complete asks the model. The answers to its calls are delivered once the request is written;
// for a model without HTTP, once its answer begins.
func (t *turn) complete(ctx context.Context, p Prompt, delta func(string)) (Reply, error) {
	if err := ctx.Err(); err != nil {
		return Reply{}, err // nobody is left to read the answer
	}
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(w httptrace.WroteRequestInfo) {
		if w.Err == nil {
			t.delivered()
		}
	}})
	said := 0
	told := Replied{Began: time.Now()}
	told.Reply, told.Err = t.a.opts.Model.Complete(traced, p, func(s string) {
		t.delivered()
		if told.First.IsZero() {
			told.First = time.Now()
		}
		said += len(s)
		delta(s)
	})
	t.spend(p, told.Reply, said)
	if told.Err == nil {
		t.delivered()
	}
	t.tellFollower(Step{Replied: &told})
	return told.Reply, told.Err
}
