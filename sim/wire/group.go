package wire

import (
	"context"
	"maps"
	"sync"

	"voicegw/sim/scenario"
)

// Group is the set of open connections of a server. The zero value is an empty
// group. Its methods may be called concurrently.
type Group struct {
	mu     sync.Mutex           // guards the following fields
	counts map[scenario.API]int // connections begun, by API; of all under ""
	open   map[*member]struct{}
	byAddr map[string]*Conn // those that were attached, by address
	closed bool
	// idle is closed when closed is set and no connection is left; nil until Close.
	idle chan struct{}
}

type member struct{ end func() }

// next numbers a connection, among all and among those of its API.
func (g *Group) next(api scenario.API) (n, ofAPI int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.counts == nil {
		g.counts = map[scenario.API]int{}
	}
	g.counts[""]++
	g.counts[api]++
	return g.counts[""], g.counts[api]
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

const maxInjected = 32

type injected struct {
	mu     sync.Mutex       // guards the following fields, and setting the connection's timer
	now    []scenario.Fault // for the next Flush
	atCall []scenario.Fault // for the next call
	over   bool             // the connection was released
}

func (i *injected) take(list *[]scenario.Fault) []scenario.Fault {
	i.mu.Lock()
	defer i.mu.Unlock()
	taken := *list
	*list = nil
	return taken
}

func (i *injected) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.now, i.atCall, i.over = nil, nil, true
}

// Inject injects a fault: one about a tool call at the next call, any other one at once. It may be called concurrently;
// the owner carries the fault out. The error is ErrNoConnection if the connection was released, or ErrTooMany.
func (c *Conn) Inject(a scenario.Fault) error {
	i := &c.injected
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.over:
		return ErrNoConnection
	case len(i.now)+len(i.atCall) >= maxInjected:
		return ErrTooMany
	case a.Kind.OfCall():
		i.atCall = append(i.atCall, a)
	default:
		i.now = append(i.now, a)
		c.timer.Reset(0)
	}
	return nil
}

// Attach makes a connection known to Inject by its client's address, host:port, until detach
// is called. No other open connection has that address.
func (g *Group) Attach(remote string, c *Conn) (detach func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byAddr == nil {
		g.byAddr = map[string]*Conn{}
	}
	g.byAddr[remote] = c
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.byAddr[remote] == c {
			delete(g.byAddr, remote)
		}
	}
}

// Inject calls Conn.Inject on the connection whose client has that address.
func (g *Group) Inject(remote string, a scenario.Fault) error {
	g.mu.Lock()
	c := g.byAddr[remote]
	g.mu.Unlock()
	if c == nil {
		return ErrNoConnection
	}
	return c.Inject(a)
}

// FaultCounts counts injected faults by their kind. The zero value is ready to use; it may be used concurrently.
type FaultCounts struct {
	mu     sync.Mutex // guards the following field
	counts map[scenario.FaultKind]int64
}

func (c *FaultCounts) add(k scenario.FaultKind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = make(map[scenario.FaultKind]int64)
	}
	c.counts[k]++
}

// All returns a copy of the counts. A kind that never occurred is missing.
func (c *FaultCounts) All() map[scenario.FaultKind]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

// Committed counts a fault.
func (s *Stats) Committed(k scenario.FaultKind) {
	s.Faults.Add(1)
	s.FaultsBy.add(k)
}
