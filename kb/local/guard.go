package local

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// guard counts the failures of the Embedder for one purpose, logs at most one a
// minute, and lets it rest for a while after each.
type guard struct {
	// Fixed.
	log   *slog.Logger
	doing string
	pause time.Duration // how long it is left alone after a failure

	count atomic.Uint64

	mu       sync.Mutex // guards the following fields
	lastLine time.Time
	until    time.Time
}

const logEvery = time.Minute

// resting says that the last failure is so near that asking again would only cost
// time. It counts as a failure.
func (g *guard) resting() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Now().Before(g.until) {
		g.count.Add(1)
		return true
	}
	return false
}

func (g *guard) failed(err error) {
	total := g.count.Add(1)
	now := time.Now()
	g.mu.Lock()
	g.until = now.Add(g.pause)
	quiet := !g.lastLine.IsZero() && now.Sub(g.lastLine) < logEvery
	if !quiet {
		g.lastLine = now
	}
	g.mu.Unlock()
	if !quiet {
		g.log.Warn("embeddings fail; the knowledge base searches by words alone", "for", g.doing, "error", err, "failures", total)
	}
}
