package openai

import (
	"sync"
	"sync/atomic"
	"time"

	"voicegw/transport"
)

// keepalive sends pings and ends the connection if nothing arrives for pongTimeout. Before Notify no goroutine reads,
// so silence means nothing. It is a timer rather than a goroutine, because there are many silent connections.
type keepalive struct {
	c        *conn        // never changes after start
	signs    atomic.Int64 // frames and pongs
	notified atomic.Bool  // Notify was called: incoming frames are read

	mu    sync.Mutex // guards the following fields; held while a turn runs
	timer *time.Timer
	heard int64     // signs at its last change
	at    time.Time // time of that change
}

func (k *keepalive) start(c *conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.c = c
	k.heard, k.at = k.signs.Load(), time.Now()
	k.timer = time.AfterFunc(pingInterval, k.turn)
}

// stop waits for a running turn. The connection must have ended, or more turns follow.
func (k *keepalive) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.timer != nil {
		k.timer.Stop()
	}
}

// turn pings, or ends a silent connection. A late pong counts: pongs 8 to 30 s late were measured with other providers.
func (k *keepalive) turn() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.c.ended() != nil {
		return
	}
	signs := k.signs.Load()
	if signs != k.heard || !k.notified.Load() {
		k.heard, k.at = signs, time.Now()
	}
	if time.Since(k.at) >= pongTimeout {
		k.c.end(k.c.t.fault("recv", transport.KindRetry, "keepalive", errSilentPeer))
		return
	}
	// signs shows whether an answer comes; the result of this ping does not matter.
	_ = k.c.ws.Ping()
	k.timer.Reset(pingInterval)
}
