package embed

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"voicegw/internal/backends/kb"
	"voicegw/internal/bounded"
)

// Options configure a Client.
type Options struct {
	// BaseURL is the API's root, with its /v1. Empty means OpenAI's own.
	BaseURL string
	// APIKey is sent as a bearer token; empty sends none, for local servers.
	APIKey string
	// Model is required: "text-embedding-3-small", "nomic-embed-text", …
	Model string
	// BatchSize bounds the texts of one request. Zero means 96, which keeps the longest
	// records below OpenAI's 300,000 tokens per request.
	BatchSize int
	// Retries is how often a request is repeated after 408, 409, 429, 5xx or a broken
	// connection, with growing pauses or as Retry-After says. Zero means 4; a negative number
	// means never.
	Retries int
	// Timeout bounds one attempt. Zero means 30 s.
	Timeout time.Duration
	// HTTPClient sends the requests, within the bounds of docs/configuration.md. Nil
	// means one over bounded.Shared.
	HTTPClient *http.Client
}

// Client is a kb.QueryEmbedder over HTTP. It may be used concurrently.
type Client struct {
	options Options
	service openai.EmbeddingService
}

var _ kb.QueryEmbedder = (*Client)(nil)

// New makes a Client. It does not connect.
func New(o Options) (*Client, error) {
	if o.Model == "" {
		return nil, errors.New("embed: no model is named")
	}
	o.BaseURL = cmp.Or(o.BaseURL, "https://api.openai.com/v1")
	if o.BatchSize <= 0 {
		o.BatchSize = 96
	}
	o.Retries = cmp.Or(o.Retries, 4)
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	options := []option.RequestOption{
		option.WithBaseURL(strings.TrimSuffix(o.BaseURL, "/") + "/"),
		option.WithMaxRetries(max(o.Retries, 0)),
		option.WithRequestTimeout(o.Timeout),
		option.WithHTTPClient(bounded.Client(o.HTTPClient, limits(&o))),
	}
	if o.APIKey != "" {
		options = append(options, option.WithAPIKey(o.APIKey))
	}
	return &Client{options: o, service: openai.NewEmbeddingService(options...)}, nil
}

// maxDimensions bounds the vectors.
const maxDimensions = 4096

// limits bound an answer: a batch of vectors in decimal numbers.
func limits(o *Options) bounded.Limits {
	numbers := o.BatchSize * maxDimensions
	return bounded.Limits{
		Service: "the embeddings endpoint", Format: bounded.JSON, Depth: 16, Idle: o.Timeout, Whole: o.Timeout,
		Bytes: int64(32*numbers) + 1<<20, Elements: int64(numbers+16*o.BatchSize) + 1000,
	}
}

// Identity names everything that determines the vectors: two clients with one identity return
// the same ones. NewCache needs it.
func (c *Client) Identity() string {
	// The files of existing caches end in these two, which once were options.
	return c.options.BaseURL + " " + c.options.Model + ` 0 ""`
}

// Embed implements kb.Embedder for the texts of records, with as many requests as necessary, one
// after the other.
func (c *Client) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, 0, len(texts))
	for len(texts) > 0 {
		some := texts[:min(c.options.BatchSize, len(texts))]
		texts = texts[len(some):]
		part, err := c.request(ctx, some)
		if err != nil {
			return nil, err
		}
		vectors = append(vectors, part...)
	}
	return vectors, kb.CheckVectors(vectors, len(vectors))
}

// EmbedQuery implements kb.QueryEmbedder.
func (c *Client) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	vectors, err := c.request(ctx, []string{text})
	if err != nil {
		return nil, err
	}
	return vectors[0], kb.CheckVectors(vectors, 1)
}

func (c *Client) request(ctx context.Context, texts []string) ([][]float32, error) {
	params := openai.EmbeddingNewParams{
		Model: c.options.Model,
		Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: texts},
		// Explicit, because servers have different defaults.
		EncodingFormat: openai.EmbeddingNewParamsEncodingFormatFloat,
	}
	// The library's own type would take several times as much memory.
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
		return nil, fmt.Errorf("embed: the answer of %s cannot be read: %w", c.options.BaseURL, err)
	}
	vectors := make([][]float32, len(texts))
	for _, one := range answer.Data {
		if one.Index < 0 || one.Index >= int64(len(texts)) || vectors[one.Index] != nil {
			return nil, fmt.Errorf("embed: %w: index %d for %d texts", kb.ErrVectors, one.Index, len(texts))
		}
		vectors[one.Index] = one.Embedding
	}
	return vectors, kb.CheckVectors(vectors, len(texts))
}

// failure returns the error without the parts that must not be logged: the texts, the key.
func (c *Client) failure(err error) error {
	var refused *openai.Error
	if !errors.As(err, &refused) {
		return fmt.Errorf("embed: asking %s: %w", c.options.BaseURL, err)
	}
	message := refused.Message
	if c.options.APIKey != "" {
		message = strings.ReplaceAll(message, c.options.APIKey, "[key]")
	}
	if runes := []rune(message); len(runes) > 200 {
		message = string(runes[:200]) + "…"
	}
	return fmt.Errorf("embed: HTTP %d %s: %s", refused.StatusCode, refused.Code, message)
}
