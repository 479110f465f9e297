package chat

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync"
	"time"

	"voicegw/internal/audit"
	"voicegw/internal/cost"
)

// undelivered holds the audit records of answers that the model hasn't received. It is safe for concurrent use.
type undelivered struct {
	mu      sync.Mutex // guards records
	records []audit.Record
}

func (u *undelivered) add(r audit.Record) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.records = append(u.records, r)
}

func (u *undelivered) take() []audit.Record {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := u.records
	u.records = nil
	return all
}

func (t *turn) delivered() {
	for _, r := range t.fresh.take() {
		t.audit(r)
	}
}

func (t *turn) undeliver(ctx context.Context) {
	why := "not_sent"
	if t.waits {
		why = "held" // until the client returns the results of its own tools
	}
	if errors.Is(context.Cause(ctx), errLeft) {
		why = "client_gone"
	}
	for _, r := range t.fresh.take() {
		r.Delivered, r.NotDelivered = false, why
		t.audit(r)
	}
}

// complete asks the model. Answers to its calls count as delivered once the request is written, or the reply begins.
func (t *turn) complete(ctx context.Context, p Prompt, delta func(string)) (Reply, error) {
	if err := ctx.Err(); err != nil {
		return Reply{}, err // no client is left
	}
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(w httptrace.WroteRequestInfo) {
		if w.Err == nil {
			t.delivered()
		}
	}})
	said := 0
	replied := Replied{Began: time.Now()}
	replied.Reply, replied.Err = t.a.opts.Model.Complete(traced, p, func(s string) {
		t.delivered()
		if replied.First.IsZero() {
			replied.First = time.Now()
		}
		said += len(s)
		delta(s)
	})
	t.spend(p, replied.Reply, said)
	if replied.Err == nil {
		t.delivered()
	}
	t.report(Step{Replied: &replied})
	return replied.Reply, replied.Err
}

// spend counts an answer's usage, estimated without a report; said is the length of the received text in bytes.
func (t *turn) spend(p Prompt, r Reply, said int) {
	used := r.Usage
	if used == (Usage{}) {
		if used = guess(p, r, said); used != (Usage{}) {
			t.guesses++
		}
	}
	t.usage = t.usage.Add(used)
	t.rec.Usage = t.usage
}

func guess(p Prompt, r Reply, said int) Usage {
	talk := cost.Talk{Written: int64(max(said, len(r.Text)) + written(r.Calls))}
	for _, m := range p.Messages {
		talk.Read += int64(len(m.Text) + written(m.Calls))
	}
	for _, tool := range p.Tools {
		talk.Read += int64(len(tool.Name) + len(tool.Description) + len(tool.Parameters))
	}
	tokens := cost.Estimate(cost.Talk{}, talk)
	return Usage{Input: tokens.Input, Output: tokens.Output}
}

func written(calls []ToolCall) (bytes int) {
	for _, c := range calls {
		bytes += len(c.Name) + len(c.Args)
	}
	return bytes
}
