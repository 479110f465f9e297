package openai

import (
	"sync"
	"time"

	"voicegw/transport"
)

// keeper pings and ends the connection when nothing has been heard for long: conn.signs counts
// frames and pongs. Until Notify nobody reads, so that silence says nothing. It is a timer and
// no goroutine, which would be there for each of many silent connections.
type keeper struct {
	// Fixed after start.
	c                 *conn
	interval, timeout time.Duration

	mu    sync.Mutex // guards the following fields; held while a turn runs
	timer *time.Timer
	heard int64     // conn.signs when it had last changed
	at    time.Time // when that was
}

// start begins to ping; stop ends it. A negative interval never pings.
func (k *keeper) start(c *conn, interval, timeout time.Duration) {
	if interval < 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.c, k.interval, k.timeout = c, interval, timeout
	k.heard, k.at = c.signs.Load(), time.Now()
	k.timer = time.AfterFunc(interval, k.turn)
}

// stop waits for a turn that runs. The connection must have ended, or there are more.
func (k *keeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.timer != nil {
		k.timer.Stop()
	}
}

// turn pings, every interval, and ends the connection when nothing has been heard for
// timeout. A pong that comes late counts as well as any: pongs 8 to 30 s late have been
// measured with other providers.
func (k *keeper) turn() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.c.ended() != nil {
		return
	}
	signs := k.c.signs.Load()
	if signs != k.heard || !k.c.notified.Load() {
		k.heard, k.at = signs, time.Now()
	}
	if time.Since(k.at) >= k.timeout {
		k.c.end(k.c.fault("recv", transport.KindRetry, "keepalive", errSilentPeer))
		return
	}
	// Whether a sign comes is seen in conn.signs: how this ping fared does not matter.
	_ = k.c.ws.Ping()
	k.timer.Reset(k.interval)
}
