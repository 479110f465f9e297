package image

import (
	"context"
	"net/http"
	"sync/atomic"
)

// Google makes images concurrently, but the SDK reads their answers one after the other, because it needs several times
// an answer's size. A turn begins after the head of an answer and ends when the SDK has decoded the answer.

type turnKey struct{}

// turn returns a context for one request, and a function that ends its turn.
func (g *Google) turn(ctx context.Context) (context.Context, func()) {
	held := &atomic.Bool{}
	return context.WithValue(ctx, turnKey{}, held), func() {
		if held.Load() {
			<-g.reading
		}
	}
}

// inTurn makes the answers of c wait for their turn.
func inTurn(c *http.Client, reading chan struct{}) *http.Client {
	c.Transport = &queue{c.Transport, reading}
	return c
}

type queue struct {
	http.RoundTripper
	reading chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (q *queue) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := q.RoundTripper.RoundTrip(r)
	held, ok := r.Context().Value(turnKey{}).(*atomic.Bool)
	if err != nil || !ok {
		return resp, err
	}
	select {
	case q.reading <- struct{}{}:
		held.Store(true)
		return resp, nil
	case <-r.Context().Done():
		_ = resp.Body.Close() // unread
		return nil, context.Cause(r.Context())
	}
}
