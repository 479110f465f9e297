package openai

import (
	"context"
	"time"

	"voicegw/transport"
)

// conn.signs counts signs of life. Recv adds one when it goes to the socket and one
// when it comes back with a frame, so an odd number says that it is there; a pong
// adds two. Control frames are only read while Recv is at the socket, so silence
// counts against the provider only then.
const pongSign = 2

// startKeepalive starts the goroutine that pings; Close waits for it. A negative
// interval starts none.
func (c *conn) startKeepalive(interval, timeout time.Duration) {
	if interval < 0 {
		return
	}
	c.keeper.Go(func() { c.keepAlive(interval, timeout) })
}

// keepAlive pings every interval and ends the connection when nothing has been heard
// for timeout. A pong that comes late counts as well as any: pongs 8 to 30 s late
// have been measured with other providers.
func (c *conn) keepAlive(interval, timeout time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	heard, at := c.signs.Load(), time.Now()
	for {
		select {
		case <-c.done:
			return
		case <-tick.C:
		}
		signs := c.signs.Load()
		if signs != heard || signs%2 == 0 {
			heard, at = signs, time.Now()
		}
		if time.Since(at) >= timeout {
			c.end(c.fault("recv", transport.KindRetry, "keepalive", errSilentPeer))
			return
		}
		c.ping(interval)
	}
}

// ping asks for a sign of life and waits for it at most until the next ping is due.
// Whether one came is seen in conn.signs: how this ping fared does not matter.
func (c *conn) ping(wait time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	_ = c.ws.Ping(ctx)
}
