package wire

import (
	"context"
	"sync"

	"voicegw/sim/fault"
)

// Group is the set of open connections of a server. The zero value is an empty
// group. Its methods may be called concurrently.
type Group struct {
	mu     sync.Mutex        // guards the following fields
	count  int               // connections begun
	counts map[fault.API]int // the same by API
	open   map[*member]struct{}
	byAddr map[string]*Conn // those that were attached, by address
	closed bool
	// idle is closed when closed is set and no connection is left; nil until Close.
	idle chan struct{}
}

type member struct{ end func() }

// next numbers a connection, among all and among those of its API.
func (g *Group) next(api fault.API) (n, ofAPI int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.counts == nil {
		g.counts = map[fault.API]int{}
	}
	g.count++
	g.counts[api]++
	return g.count, g.counts[api]
}

// Enter registers a connection. end is called, once and from another goroutine, when the group closes. Enter returns
// the function to call when the connection has ended, and false if the group is closed already.
func (g *Group) Enter(end func()) (leave func(), ok bool) {
	m := &member{end: end}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return func() {}, false
	}
	if g.open == nil {
		g.open = map[*member]struct{}{}
	}
	g.open[m] = struct{}{}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		before := len(g.open)
		delete(g.open, m)
		if g.closed && before > 0 && len(g.open) == 0 {
			close(g.idle)
		}
	}, true
}

// Len returns the number of open connections.
func (g *Group) Len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.open)
}

// Close ends all connections and waits until all have left, or ctx is done. It may be called again.
func (g *Group) Close(ctx context.Context) error {
	g.mu.Lock()
	var ends []func()
	if !g.closed {
		g.closed = true
		g.idle = make(chan struct{})
		if len(g.open) == 0 {
			close(g.idle)
		}
		for m := range g.open {
			ends = append(ends, m.end)
		}
	}
	idle := g.idle
	g.mu.Unlock()
	for _, end := range ends {
		end()
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
