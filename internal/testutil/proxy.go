package testutil

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// maxConns bounds the open connections; further ones are reset.
const maxConns = 512

// dialTime bounds connecting to the target.
const dialTime = 10 * time.Second

// Proxy forwards TCP connections to a target and injects faults. It may be used concurrently.
type Proxy struct {
	// Immutable.
	listener net.Listener
	target   func() string
	cancel   context.CancelFunc // ends dials
	work     sync.WaitGroup     // for the accepting goroutine and two for each connection

	passed [2]atomic.Int64 // bytes, by direction

	mu       sync.Mutex // guards the following fields
	accepted int64
	conns    map[*conn]struct{}
	later    []Command // for future connections
	refuse   bool
	closed   bool
}

// Listen listens on addr, such as "127.0.0.1:0", and forwards connections to target, host:port, which need not exist
// yet.
func Listen(addr, target string) (*Proxy, error) {
	return Balance(addr, func() string { return target })
}

// Balance is Listen for several targets: target is called when a client connects and returns host:port. It is called
// concurrently and must not block.
func Balance(addr string, target func() string) (*Proxy, error) {
	ln, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("faultproxy: %w", err)
	}
	p := &Proxy{listener: ln, target: target, conns: map[*conn]struct{}{}}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	p.work.Go(func() { p.accept(ctx) })
	return p, nil
}

// Addr is the address for clients as host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close resets all connections and waits for the proxy's goroutines. It may be called more than once.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	open := slices.Collect(maps.Keys(p.conns))
	p.mu.Unlock()
	err := p.listener.Close()
	p.cancel()
	for _, c := range open {
		c.abort()
	}
	p.work.Wait()
	return err
}

// Do executes a command. It affects everything sent after Do returns; data in flight may have passed, as on a network.
// The error says what is wrong with the command.
func (p *Proxy) Do(cmd Command) error {
	if err := cmd.check(); err != nil {
		return fmt.Errorf("faultproxy: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case cmd.Do == Refuse:
		p.refuse = true
		return nil
	case cmd.Do == Heal:
		p.refuse, p.later = false, nil
	case cmd.Later:
		p.later = append(p.later, cmd)
	}
	for c := range p.conns {
		c.order(cmd)
	}
	return nil
}

// State is a proxy's statistics.
type State struct {
	Open     int   `json:"open"`      // connections with at least one side open
	Accepted int64 `json:"accepted"`  // all connections, including refused ones
	ToTarget int64 `json:"to_target"` // forwarded bytes
	ToClient int64 `json:"to_client"`
}

// State returns the statistics.
func (p *Proxy) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return State{len(p.conns), p.accepted, p.passed[up].Load(), p.passed[down].Load()}
}

// Control is an HTTP interface: POST / executes a JSON command (see ReadCommand) and answers 204, or 400 with the error;
// GET / answers with the State.
func (p *Proxy) Control() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(p.State()) // fails only if the client is gone
		case http.MethodPost:
			cmd, err := ReadCommand(r.Body)
			if err == nil {
				err = p.Do(cmd)
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			w.WriteHeader(http.StatusNoContent)
		default:
			w.Header().Set("Allow", "GET, POST")
			http.Error(w, "GET the state, or POST a command", http.StatusMethodNotAllowed)
		}
	})
}

// accept accepts connections until the listener is closed.
func (p *Proxy) accept(ctx context.Context) {
	for {
		raw, err := p.listener.Accept()
		if err != nil {
			return
		}
		client, isTCP := raw.(*net.TCPConn)
		if !isTCP { // the listener is TCP
			_ = raw.Close()
			continue
		}
		c := newConn(p, client)
		if !p.enter(c) {
			reset(client)
			continue
		}
		p.work.Go(func() { c.serve(ctx) })
	}
}

// enter registers a connection and applies the commands for later ones.
func (p *Proxy) enter(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accepted++
	if p.closed || p.refuse || len(p.conns) >= maxConns {
		return false
	}
	p.conns[c] = struct{}{}
	for _, cmd := range p.later {
		c.order(cmd)
	}
	return true
}

func (p *Proxy) leave(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// reset closes a socket with RST; it fails only if closed before.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}
