package kb

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"voicegw/internal/bounded"
	"voicegw/registry/document"
)

// EmbeddingOptions configure an EmbeddingClient.
type EmbeddingOptions struct {
	BaseURL string // the API's root, with its /v1
	APIKey  string // sent as a bearer token; empty sends none, for local servers
	Model   string
	// Retries bounds the retries after 408, 409, 429, 5xx or a broken connection, with growing pauses or after the time
	// in Retry-After. Zero means 4; a negative number means none.
	Retries int
	Timeout time.Duration // bounds one attempt. Zero means 30 s.
}

// EmbeddingClient is an Embedder over OpenAI's embeddings API
// (https://platform.openai.com/docs/api-reference/embeddings). It may be used concurrently.
type EmbeddingClient struct {
	options EmbeddingOptions
	service openai.EmbeddingService
}

var _ Embedder = (*EmbeddingClient)(nil)

// NewEmbeddingClient makes an EmbeddingClient. It does not connect.
func NewEmbeddingClient(o EmbeddingOptions) *EmbeddingClient {
	o.Retries = cmp.Or(o.Retries, 4)
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	const numbers = embeddingBatch * maxDimensions
	options := []option.RequestOption{
		option.WithBaseURL(strings.TrimSuffix(o.BaseURL, "/") + "/"),
		option.WithMaxRetries(max(o.Retries, 0)),
		option.WithRequestTimeout(o.Timeout),
		option.WithHTTPClient(bounded.Client(nil, bounded.Limits{
			Service: "the embeddings endpoint", Format: bounded.JSON, Depth: 16, Idle: o.Timeout, Whole: o.Timeout,
			Bytes: 32*numbers + 1<<20, Elements: numbers + 16*embeddingBatch + 1000,
		})),
	}
	if o.APIKey != "" {
		options = append(options, option.WithAPIKey(o.APIKey))
	}
	return &EmbeddingClient{options: o, service: openai.NewEmbeddingService(options...)}
}

const (
	// embeddingBatch is the maximum number of texts in one request and of new vectors that a cache asks for at once. It
	// keeps a request of the longest records below OpenAI's limit of 300,000 tokens.
	embeddingBatch = 96
	maxDimensions  = 4096
)

// Identity names everything that determines the vectors: clients with equal identities return equal vectors.
func (c *EmbeddingClient) Identity() string {
	// The last two were options once; existing cache files contain them.
	return c.options.BaseURL + " " + c.options.Model + ` 0 ""`
}

// Embed implements Embedder. It sends its requests one after the other.
func (c *EmbeddingClient) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, 0, len(texts))
	for some := range slices.Chunk(texts, embeddingBatch) {
		part, err := c.request(ctx, some)
		if err != nil {
			return nil, err
		}
		vectors = append(vectors, part...)
	}
	return vectors, CheckVectors(vectors, len(vectors))
}

func (c *EmbeddingClient) request(ctx context.Context, texts []string) ([][]float32, error) {
	params := openai.EmbeddingNewParams{
		Model: c.options.Model,
		Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: texts},
		// Explicit, because servers have different defaults.
		EncodingFormat: openai.EmbeddingNewParamsEncodingFormatFloat,
	}
	// The library's own type takes several times as much memory.
	var data []byte
	if _, err := c.service.New(ctx, params, option.WithResponseBodyInto(&data)); err != nil {
		return nil, c.failure(err)
	}
	var answer struct {
		Data []struct {
			Index     int64
			Embedding []float32
		}
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, fmt.Errorf("kb: the answer of %s is invalid: %w", c.options.BaseURL, err)
	}
	vectors := make([][]float32, len(texts))
	for _, one := range answer.Data {
		if one.Index < 0 || one.Index >= int64(len(texts)) || vectors[one.Index] != nil {
			return nil, fmt.Errorf("%w: index %d for %d texts", ErrVectors, one.Index, len(texts))
		}
		vectors[one.Index] = one.Embedding
	}
	return vectors, CheckVectors(vectors, len(texts))
}

// failure returns the error without the texts and the key, which must not be logged.
func (c *EmbeddingClient) failure(err error) error {
	var refused *openai.Error
	if !errors.As(err, &refused) {
		return fmt.Errorf("kb: asking %s for embeddings: %w", c.options.BaseURL, err)
	}
	message := refused.Message
	if c.options.APIKey != "" {
		message = strings.ReplaceAll(message, c.options.APIKey, "[key]")
	}
	return fmt.Errorf("kb: embeddings: HTTP %d %s: %s", refused.StatusCode, refused.Code, document.Shorten(message, 200))
}

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
