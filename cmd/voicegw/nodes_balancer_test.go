package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// balancer spreads connections over gateways. It asks each now and then whether it takes new sessions, and skips those
// that do not.
type balancer struct {
	addr     string
	ln       net.Listener
	backends []*member
	leave    context.CancelFunc
	work     sync.WaitGroup

	mu    sync.Mutex // guards the following fields
	next  int
	open  map[*spliced]struct{}
	over  bool
	onlyA *member // if not nil, all connections go to it
}

// member is a gateway.
type member struct {
	addr string

	mu    sync.Mutex // guards the following field
	ready bool
}

// spliced is one connection.
type spliced struct {
	client, gateway *net.TCPConn
	to              *member
	lossy           atomic.Bool  // drops all bytes for the client
	lost            atomic.Int64 // number of dropped bytes
}

// The times of the balancer: the interval of its checks, and the timeout of each.
const (
	askEvery = 100 * time.Millisecond
	askTime  = time.Second
)

func startBalancer(t *testing.T, addrs []string) *balancer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(context.Background())
	b := &balancer{addr: ln.Addr().String(), ln: ln, leave: leave, open: map[*spliced]struct{}{}}
	for _, addr := range addrs {
		back := &member{addr: addr, ready: true}
		b.backends = append(b.backends, back)
		b.work.Go(func() { back.watch(ctx) })
	}
	b.work.Go(b.accept)
	t.Cleanup(b.close)
	return b
}

// watch checks a gateway repeatedly.
func (b *member) watch(ctx context.Context) {
	client := &http.Client{Timeout: askTime, Transport: &http.Transport{DisableKeepAlives: true}}
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		ready := false
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.addr+"/readyz", nil)
		if err == nil {
			var resp *http.Response
			if resp, err = client.Do(r); err == nil {
				ready = resp.StatusCode == http.StatusOK
				_ = resp.Body.Close()
			}
		}
		b.mark(ready)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (b *member) mark(ready bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready = ready
}

func (b *member) is() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ready
}

func (b *balancer) accept() {
	for {
		c, err := b.ln.Accept()
		if err != nil {
			return
		}
		b.work.Go(func() { b.pass(c.(*net.TCPConn)) })
	}
}

// pass carries a client's connection to a ready gateway, and aborts it without one.
func (b *balancer) pass(client *net.TCPConn) {
	gateway, to := b.dial()
	if gateway == nil {
		abort(client)
		return
	}
	s := &spliced{client: client, gateway: gateway, to: to}
	b.mu.Lock()
	over := b.over
	b.open[s] = struct{}{}
	b.mu.Unlock()
	if over {
		s.abort()
	}
	var up sync.WaitGroup
	up.Go(func() { carry(gateway, client, s) })
	carry(towards{s}, gateway, s)
	up.Wait()
	s.abort()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, s)
}

// half is a connection that can close its writing side.
type half interface {
	io.Writer
	CloseWrite() error
}

// towards is the client's side of a connection.
type towards struct{ *spliced }

// Write drops bytes of a connection that is about to break: its sender gets no error.
func (t towards) Write(b []byte) (int, error) {
	if t.lossy.Load() {
		t.lost.Add(int64(len(b)))
		return len(b), nil
	}
	return t.client.Write(b)
}

// CloseWrite is part of half.
func (t towards) CloseWrite() error { return t.client.CloseWrite() }

// carry copies one direction. If one connection breaks, it breaks the other.
func carry(to half, from *net.TCPConn, s *spliced) {
	if _, err := io.Copy(to, from); err != nil {
		s.abort()
		return
	}
	_ = to.CloseWrite() // it may be closed already
}

// lose drops all bytes to the clients until their connections are cut. It returns a function that counts the clients
// which lost at least that many bytes.
func (b *balancer) lose() (lost func(bytes int64) int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []*spliced
	for s := range b.open {
		s.lossy.Store(true)
		all = append(all, s)
	}
	return func(bytes int64) (n int) {
		for _, s := range all {
			if s.lost.Load() >= bytes {
				n++
			}
		}
		return n
	}
}

func (s *spliced) abort() {
	abort(s.client)
	abort(s.gateway)
}

// abort ends a connection with RST.
func abort(c *net.TCPConn) {
	_ = c.SetLinger(0) // it may be closed already
	_ = c.Close()
}

// dial connects to the next reachable gateway, preferring ready ones.
func (b *balancer) dial() (*net.TCPConn, *member) {
	b.mu.Lock()
	first := b.next
	b.next++
	only := b.onlyA
	b.mu.Unlock()
	for _, ready := range []bool{true, false} {
		for i := range b.backends {
			to := b.backends[(first+i)%len(b.backends)]
			if only != nil && to != only || only == nil && to.is() != ready {
				continue
			}
			if c, err := net.DialTimeout("tcp", to.addr, askTime); err == nil {
				return c.(*net.TCPConn), to
			}
			to.mark(false)
		}
	}
	return nil, nil
}

// only sends all new connections to one gateway; -1 removes the restriction.
func (b *balancer) only(i int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.onlyA = nil
	if i >= 0 {
		b.onlyA = b.backends[i]
	}
}

// cut ends all connections to a gateway with RST on both sides and returns their number.
func (b *balancer) cut(i int) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.open {
		if s.to == b.backends[i] {
			s.abort()
			n++
		}
	}
	return n
}

func (b *balancer) close() {
	b.leave()
	_ = b.ln.Close()
	b.mu.Lock()
	b.over = true
	for s := range b.open {
		s.abort()
	}
	b.mu.Unlock()
	b.work.Wait()
}
