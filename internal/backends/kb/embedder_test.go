package kb_test

import (
	"context"
	"errors"
	"sync"

	"voicegw/sim"
)

// fakeEmbedder is a kb.Embedder with the simulator's vectors, which depend only on the text. They are much worse than
// those of a model, so measurements with them do not apply to models.
type fakeEmbedder struct {
	// Dimensions of the vectors. Zero means 256.
	Dimensions int

	mu    sync.Mutex // guards the following fields
	fail  error
	texts int
}

// errEmbedder is the default error of a failing fakeEmbedder.
var errEmbedder = errors.New("the embedder fails on request")

// Fail makes later calls fail with err, or succeed if err is nil.
func (e *fakeEmbedder) Fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fail = err
}

// Embedded returns the number of embedded texts.
func (e *fakeEmbedder) Embedded() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.texts
}

// Embed implements kb.Embedder.
func (e *fakeEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.mu.Lock()
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
		vectors[i] = sim.Vector(text, dimensions)
	}
	return vectors, nil
}
