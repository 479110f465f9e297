package testutil

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"time"
)

const (
	maxConns = 512              // bounds the open connections; further ones are reset
	dialTime = 10 * time.Second // bounds connecting to the target
)

// Way is a direction through the proxy.
type Way string

// The directions.
const (
	ToTarget Way = "to_target"
	ToClient Way = "to_client"
)

// Kind is a command's effect.
type Kind string

// The kinds of command.
const (
	Reset  Kind = "reset"  // sends RST to both sides or to one, which loses the data from the other side
	Finish Kind = "finish" // sends FIN to both sides after the data already accepted
	// BlackHole loses all further data, including FIN and RST. Heal does not revive the connection. Unlike on a real
	// network, senders never block; use Freeze for that.
	BlackHole Kind = "black_hole"
	// Freeze delays all data for Command.For or until Heal, like a network outage: nothing is lost and senders block.
	Freeze Kind = "freeze"
	Heal   Kind = "heal" // ends Freeze, and cancels commands waiting for later connections or bytes
)

// Command is an action on a proxy's connections.
type Command struct {
	Do  Kind
	Way Way           // the side that gets a Reset; empty means both
	For time.Duration // the duration of Freeze; zero means until Heal
	// AfterBytes, if positive, delays the action until that many more bytes have passed in direction Count.
	AfterBytes int64
	Count      Way
	Later      bool // also applies the action to new connections until Heal
}

// Proxy forwards TCP connections to a target and injects faults. It may be used concurrently.
type Proxy struct {
	// Immutable.
	listener *net.TCPListener
	target   func() string
	cancel   context.CancelFunc // ends dials
	work     sync.WaitGroup     // for the accepting goroutine and two for each connection

	mu       sync.Mutex // guards the following fields
	accepted int
	conns    map[*conn]struct{}
	later    []Command // for future connections
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
	var ln *net.TCPListener
	at, err := net.ResolveTCPAddr("tcp", addr)
	if err == nil {
		ln, err = net.ListenTCP("tcp", at)
	}
	if err != nil {
		return nil, fmt.Errorf("faultproxy: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Proxy{listener: ln, target: target, cancel: cancel, conns: map[*conn]struct{}{}}
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
		c.end(reset)
	}
	p.work.Wait()
	return err
}

// Do executes a command. It affects everything sent after Do returns; data in flight may have passed, as on a network.
func (p *Proxy) Do(cmd Command) error {
	if !slices.Contains([]Kind{Reset, Finish, BlackHole, Freeze, Heal}, cmd.Do) || (cmd.AfterBytes > 0) != (cmd.Count != "") {
		return fmt.Errorf("faultproxy: %+v is not a command", cmd)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if cmd.Do == Heal {
		p.later = nil
	} else if cmd.Later {
		p.later = append(p.later, cmd)
	}
	for c := range p.conns {
		c.order(cmd)
	}
	return nil
}

func (p *Proxy) accept(ctx context.Context) {
	for {
		client, err := p.listener.AcceptTCP()
		if err != nil {
			return
		}
		c := &conn{p: p, client: client, orders: map[Way][]Command{}}
		c.changed.L = &c.mu
		if !p.enter(c) {
			reset(client)
			continue
		}
		p.work.Go(func() { c.serve(ctx) })
	}
}

func (p *Proxy) enter(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accepted++
	if p.closed || len(p.conns) >= maxConns {
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

// conn is one connection through the proxy, with a goroutine for each direction.
type conn struct {
	// Immutable.
	p      *Proxy
	client *net.TCPConn

	mu      sync.Mutex        // guards the following fields
	target  *net.TCPConn      // nil until dialled
	orders  map[Way][]Command // waiting for AfterBytes more bytes in a direction
	lost    bool              // nothing passes any more
	over    bool
	frozen  bool
	until   time.Time // the end of the freeze; zero means until Heal
	changed sync.Cond // wakes the goroutines in pass
}

func (c *conn) serve(ctx context.Context) {
	defer c.p.leave(c)
	defer c.end(func(s *net.TCPConn) { _ = s.Close() }) // forwarded data is still delivered
	if _, lost := c.pass(ToTarget, 0); lost {           // the target never learns of it
		_, _ = io.Copy(io.Discard, c.client) // until the client gives up
		return
	}
	raw, err := (&net.Dialer{Timeout: dialTime}).DialContext(ctx, "tcp", c.p.target())
	target, isTCP := raw.(*net.TCPConn)
	if err != nil || !isTCP {
		c.end(reset) // as if the connection were refused
		return
	}
	c.mu.Lock()
	c.target = target
	over := c.over
	c.mu.Unlock()
	if over {
		reset(target)
		return
	}
	var other sync.WaitGroup
	other.Go(func() { c.pump(ToClient, target, c.client) })
	c.pump(ToTarget, c.client, target)
	other.Wait()
}

func (c *conn) pump(way Way, src, dst *net.TCPConn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		for data := buf[:n]; len(data) > 0; {
			room, lost := c.pass(way, len(data))
			if lost {
				break
			}
			if _, err := dst.Write(data[:room]); err != nil {
				break // dst has ended, which the other direction notices
			}
			data = data[room:]
			c.count(way, room)
		}
		if err == nil {
			continue
		}
		switch _, lost := c.pass(way, 0); {
		case lost:
		case errors.Is(err, io.EOF):
			_ = dst.CloseWrite() // fails only if dst is gone
		default:
			c.end(reset) // the source was reset, so reset the other side too
		}
		return
	}
}

// pass waits while the connection is frozen. It returns how many of n bytes may pass before the next order, and whether
// data is lost.
func (c *conn) pass(way Way, n int) (room int, lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.over && !c.lost && c.frozen && (c.until.IsZero() || time.Now().Before(c.until)) {
		c.changed.Wait()
	}
	for _, o := range c.orders[way] {
		n = int(min(int64(n), o.AfterBytes))
	}
	return n, c.lost || c.over
}

// count records n passed bytes and executes due orders.
func (c *conn) count(way Way, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	orders := c.orders[way]
	c.orders[way] = nil
	for _, o := range orders {
		if o.AfterBytes -= int64(n); o.AfterBytes > 0 {
			c.orders[way] = append(c.orders[way], o)
		} else {
			c.apply(o)
		}
	}
}

func (c *conn) order(cmd Command) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cmd.AfterBytes > 0 {
		c.orders[cmd.Count] = append(c.orders[cmd.Count], cmd)
		return
	}
	c.apply(cmd)
}

// apply executes a command now. The caller holds mu.
func (c *conn) apply(cmd Command) {
	if c.over {
		return
	}
	sides := map[Way]*net.TCPConn{ToClient: c.client}
	if c.target != nil {
		sides[ToTarget] = c.target
	}
	switch cmd.Do {
	case Reset:
		c.lost, c.over = true, cmd.Way == ""
		for way, side := range sides {
			if c.over || way == cmd.Way {
				reset(side)
			}
		}
	case Finish:
		c.lost = true
		for _, side := range sides {
			_ = side.CloseWrite() // fails only if the socket is gone
		}
	case BlackHole:
		c.lost = true
	case Freeze:
		c.frozen, c.until = true, time.Time{}
		if cmd.For > 0 {
			c.until = time.Now().Add(cmd.For)
			time.AfterFunc(cmd.For, func() {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.changed.Broadcast()
			})
		}
	case Heal:
		c.frozen = false
		clear(c.orders)
	}
	c.changed.Broadcast()
}

// end ends the open directions of the connection.
func (c *conn) end(how func(side *net.TCPConn)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.over = true
	how(c.client)
	if c.target != nil {
		how(c.target)
	}
	c.changed.Broadcast()
}

// reset closes a socket with RST; it fails only if closed before.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}
