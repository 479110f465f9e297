package openai

import (
	"sync"
	"time"

	"voicegw/transport"
)

// keeper sends pings and ends the connection if nothing has arrived for long: conn.signs counts
// frames and pongs. Before Notify no goroutine reads, so silence means nothing. It is a timer
// rather than a goroutine, because there are many silent connections.
type keeper struct {
	// Fixed after start.
	c                 *conn
	interval, timeout time.Duration

	mu    sync.Mutex // guards the following fields; held while a turn runs
	timer *time.Timer
	heard int64     // conn.signs at its last change
	at    time.Time // time of that change
}

// start begins to ping until stop. A negative interval never pings.
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

// stop waits for a running turn. The connection must have ended, or more turns follow.
func (k *keeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.timer != nil {
		k.timer.Stop()
	}
}

// turn pings at every interval, and ends the connection if nothing has arrived for
// timeout. A late pong counts like any other: pongs 8 to 30 s late have been
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
	// conn.signs shows whether an answer comes; the result of this ping does not matter.
	_ = k.c.ws.Ping()
	k.timer.Reset(k.interval)
}
