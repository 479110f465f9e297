package kb

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Guard calls an Embedder for one purpose, and logs and counts its failures. It may be used concurrently.
type Guard struct {
	// Fixed after newGuard.
	embedder Embedder
	log      *slog.Logger
	purpose  string
	timeout  time.Duration // of a call; 0 means none
	rest     time.Duration // after a failure without calls, so that callers do not wait for another one

	count atomic.Uint64 // failed and skipped calls

	mu       sync.Mutex // guards the fields below
	lastLine time.Time
	until    time.Time
}

const logEvery = time.Minute

// NewGuards makes the Guards of an index for queries and for records. Both are nil without an embedder. log may be nil.
func NewGuards(embedder Embedder, log *slog.Logger) (query, records *Guard) {
	if embedder == nil {
		return nil, nil
	}
	return newGuard(embedder, log, "query", 600*time.Millisecond, 10*time.Second), newGuard(embedder, log, "records", 0, 0)
}

func newGuard(embedder Embedder, log *slog.Logger, purpose string, timeout, rest time.Duration) *Guard {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	return &Guard{embedder: embedder, log: log, purpose: purpose, timeout: timeout, rest: rest}
}

// Query returns the vector of a query, with the given dimensions (0 means any), or nil.
func (g *Guard) Query(ctx context.Context, text string, dimensions int) []float32 {
	vectors := g.ask(ctx, 1, dimensions, func(ctx context.Context) ([][]float32, error) {
		vector, err := EmbedQuery(ctx, g.embedder, text)
		return [][]float32{vector}, err
	})
	if vectors == nil {
		return nil
	}
	return vectors[0]
}

// Records returns the vectors of records' texts, with the given dimensions (0 means any), or nil.
func (g *Guard) Records(ctx context.Context, texts []string, dimensions int) [][]float32 {
	return g.ask(ctx, len(texts), dimensions, func(ctx context.Context) ([][]float32, error) { return g.embedder.Embed(ctx, texts) })
}

func (g *Guard) ask(ctx context.Context, texts, dimensions int, embed func(context.Context) ([][]float32, error)) [][]float32 {
	if g.resting() {
		return nil
	}
	limited := ctx
	if g.timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, g.timeout)
		defer cancel()
	}
	vectors, err := embed(limited)
	if err == nil {
		err = CheckVectors(vectors, texts)
	}
	if err == nil && dimensions != 0 && len(vectors[0]) != dimensions {
		err = fmt.Errorf("%w: a vector has %d numbers, but the index has %d; another model needs another index",
			ErrVectors, len(vectors[0]), dimensions)
	}
	if err == nil {
		return vectors
	}
	if ctx.Err() == nil { // otherwise the caller has cancelled
		g.failed(err)
	}
	return nil
}

func (g *Guard) resting() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Now().Before(g.until) {
		g.count.Add(1)
		return true
	}
	return false
}

func (g *Guard) failed(err error) {
	total := g.count.Add(1)
	now := time.Now()
	g.mu.Lock()
	g.until = now.Add(g.rest)
	quiet := !g.lastLine.IsZero() && now.Sub(g.lastLine) < logEvery
	if !quiet {
		g.lastLine = now
	}
	g.mu.Unlock()
	if !quiet {
		g.log.Warn("embeddings fail; the knowledge base searches by words alone", "for", g.purpose, "error", err, "failures", total)
	}
}
