package testutil

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// up and down are indexes of the directions: to the target and to the client.
const (
	up = iota
	down
)

// lane is one direction of a connection.
type lane struct {
	dead   bool // data is lost
	ended  bool // its goroutine has returned
	frozen bool
	until  time.Time // end of the freeze; zero means until Heal
	orders []order   // what happens after more bytes
}

// order is a command waiting for bytes.
type order struct {
	left int64
	cmd  Command
}

// conn is one connection through the proxy, with a goroutine for each direction.
type conn struct {
	// Immutable.
	p      *Proxy
	client *net.TCPConn

	mu     sync.Mutex   // guards the following fields
	target *net.TCPConn // nil until dialled
	lanes  [2]lane
	over   bool
	// changed is closed and replaced when a lane may continue or the connection is over.
	changed chan struct{}
}

func newConn(p *Proxy, client *net.TCPConn) *conn {
	return &conn{p: p, client: client, changed: make(chan struct{})}
}

// serve runs the connection to its end.
func (c *conn) serve(ctx context.Context) {
	defer c.p.leave(c)
	defer c.close()
	if lost, over := c.pass(up); over {
		return
	} else if lost { // the target never learns of it
		_, _ = io.Copy(io.Discard, c.client) // until the client gives up
		return
	}
	d := net.Dialer{Timeout: dialTime}
	raw, err := d.DialContext(ctx, "tcp", c.p.target())
	if err != nil {
		c.abort() // as if the connection were refused
		return
	}
	target, isTCP := raw.(*net.TCPConn)
	if !isTCP { // the network is "tcp"
		_ = raw.Close()
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
	other.Go(func() { c.pump(down, target, c.client) })
	c.pump(up, c.client, target)
	other.Wait()
}

// pump forwards one direction until its source ends.
func (c *conn) pump(way int, src, dst *net.TCPConn) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.lanes[way].ended = true
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if !c.forward(way, buf[:n], dst) {
			return
		}
		if err == nil {
			continue
		}
		if lost, over := c.pass(way); lost || over {
			return
		}
		if errors.Is(err, io.EOF) {
			_ = dst.CloseWrite() // fails only if dst is gone
			return
		}
		c.abort() // the source was reset, so reset the other side too
		return
	}
}

// forward forwards data as the lane allows; false if the connection is over.
func (c *conn) forward(way int, data []byte, dst *net.TCPConn) bool {
	for len(data) > 0 {
		lost, over := c.pass(way)
		if over {
			return false
		}
		if lost {
			return true
		}
		n := c.room(way, len(data))
		if n > 0 {
			c.p.passed[way].Add(int64(n)) // before the receiver has them
			if _, err := dst.Write(data[:n]); err != nil {
				// dst has ended, which the other lane notices. The rest is lost.
				return true
			}
			data = data[n:]
		}
		c.count(way, n)
	}
	return true
}

// pass waits while a lane is frozen. It returns whether data is lost, and whether the connection is over.
func (c *conn) pass(way int) (lost, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		l := &c.lanes[way]
		if l.frozen && !l.until.IsZero() && !time.Now().Before(l.until) {
			l.frozen = false
		}
		if c.over || l.dead || !l.frozen {
			return l.dead, c.over
		}
		changed, until := c.changed, l.until
		c.mu.Unlock()
		wait(changed, until)
		c.mu.Lock()
	}
}

// wait waits for a change or, unless until is zero, a time.
func wait(changed <-chan struct{}, until time.Time) {
	var due <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-changed:
	case <-due:
	}
}

// room returns how many of n bytes may pass before the lane's next order.
func (c *conn) room(way, n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.lanes[way].orders {
		n = int(min(int64(n), o.left))
	}
	return n
}

// count records n passed bytes and executes due orders.
func (c *conn) count(way, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var due []Command
	waiting := c.lanes[way].orders[:0]
	for _, o := range c.lanes[way].orders {
		if o.left -= int64(n); o.left <= 0 {
			due = append(due, o.cmd)
			continue
		}
		waiting = append(waiting, o)
	}
	c.lanes[way].orders = waiting
	for _, cmd := range due {
		c.apply(cmd)
	}
}

// order executes a command or stores it for later.
func (c *conn) order(cmd Command) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cmd.AfterBytes > 0 {
		way := up
		if cmd.Count == ToClient {
			way = down
		}
		c.lanes[way].orders = append(c.lanes[way].orders, order{cmd.AfterBytes, cmd})
		return
	}
	c.apply(cmd)
}

// apply executes a command now. The caller holds mu.
func (c *conn) apply(cmd Command) {
	if c.over {
		return
	}
	both := cmd.Way == "" || cmd.Way == Both
	concerned := [2]bool{up: both || cmd.Way == ToTarget, down: both || cmd.Way == ToClient}
	socket := [2]*net.TCPConn{up: c.target, down: c.client} // each lane's destination
	if cmd.Do == Reset && both {
		c.end()
		return
	}
	for way := range c.lanes {
		l := &c.lanes[way]
		switch {
		case cmd.Do == Heal:
			l.frozen, l.orders = false, nil
		case cmd.Do == Reset: // only one side learns of it, and nothing passes any more
			l.dead = true
			if concerned[way] && socket[way] != nil {
				reset(socket[way])
			}
		case !concerned[way]:
		case cmd.Do == Finish:
			l.dead = true
			if socket[way] != nil {
				_ = socket[way].CloseWrite() // fails only if the socket is gone
			}
		case cmd.Do == BlackHole:
			l.dead = true
		case cmd.Do == Freeze:
			l.frozen, l.until = true, time.Time{}
			if cmd.For > 0 {
				l.until = time.Now().Add(cmd.For)
			}
		}
	}
	c.signal()
}

// signal wakes the goroutines waiting in pass. The caller holds mu.
func (c *conn) signal() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// end resets both sides. The caller holds mu.
func (c *conn) end() {
	if c.over {
		return
	}
	c.over = true
	reset(c.client)
	if c.target != nil {
		reset(c.target)
	}
	c.signal()
}

// close closes a connection whose sources have ended; forwarded data is still delivered.
func (c *conn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.over = true
	_ = c.client.Close() // fails only if closed before
	if c.target != nil {
		_ = c.target.Close()
	}
	c.signal()
}

// abort resets what is left of the connection.
func (c *conn) abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end()
}
