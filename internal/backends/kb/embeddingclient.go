package kb

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"voicegw/internal/bounded"
)

// EmbeddingOptions configure an EmbeddingClient.
type EmbeddingOptions struct {
	// BaseURL is the API's root, with its /v1.
	BaseURL string
	// APIKey is sent as a bearer token; empty sends none, for local servers.
	APIKey string
	Model  string
	// Retries bounds the retries after 408, 409, 429, 5xx or a broken connection, with growing pauses or after the time
	// in Retry-After. Zero means 4; a negative number means none.
	Retries int
	// Timeout bounds one attempt. Zero means 30 s.
	Timeout time.Duration
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
	for len(texts) > 0 {
		some := texts[:min(embeddingBatch, len(texts))]
		texts = texts[len(some):]
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
	if runes := []rune(message); len(runes) > 200 {
		message = string(runes[:200]) + "…"
	}
	return fmt.Errorf("kb: embeddings: HTTP %d %s: %s", refused.StatusCode, refused.Code, message)
}
