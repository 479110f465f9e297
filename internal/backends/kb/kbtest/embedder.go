package kbtest

import (
	"context"
	"errors"
	"sync"

	"voicegw/sim/rest"
)

// Embedder is a kb.Embedder for tests: the simulator's vectors without its server, the same for
// the same text on every machine. It understands little: a real model finds far more texts in
// other words, and makes other mistakes, so a figure measured with it says nothing about a model.
type Embedder struct {
	// Dimensions of the vectors. Zero means 256.
	Dimensions int

	mu    sync.Mutex // guards the following fields
	fail  error
	texts int
	calls int
}

// ErrEmbedder is the default error of a failing Embedder.
var ErrEmbedder = errors.New("kbtest: the embedder fails as it was told")

// Fail makes every later call fail with err, or succeed again with nil.
func (e *Embedder) Fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fail = err
}

// Embedded returns how many texts were embedded in how many calls.
func (e *Embedder) Embedded() (texts, calls int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.texts, e.calls
}

// Embed implements kb.Embedder.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.mu.Lock()
	e.calls++
	if err := e.fail; err != nil {
		e.mu.Unlock()
		return nil, err
	}
	e.texts += len(texts)
	e.mu.Unlock()
	dimensions := e.Dimensions
	if dimensions <= 0 {
		dimensions = 256
	}
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = rest.Vector(text, dimensions)
	}
	return vectors, nil
}
