package kb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"voicegw/internal/bounded"
	"voicegw/registry/document"
)

type qdrantClient struct {
	base   string
	key    string
	http   *http.Client
	bounds time.Duration // of one attempt
}

// qdrantLimits bound an answer: pageSize points, pointsChunk records, or the vectors of a chunk (chunkOf).
func qdrantLimits(timeout time.Duration) bounded.Limits {
	return bounded.Limits{Service: "Qdrant", Format: bounded.JSON, Bytes: 16 << 20, Depth: 32, Idle: timeout, Whole: timeout}
}

const (
	maxTries   = 3
	firstPause = 100 * time.Millisecond // before the second attempt; it doubles
)

// call sends a request and decodes the "result" of the answer into out. It retries after errors that may pass: all
// requests of Qdrant are idempotent.
func (c *qdrantClient) call(ctx context.Context, method, path string, body, out any) error {
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return fmt.Errorf("qdrant: %s %s: %w", method, path, err)
		}
	}
	for try, pause := 1, firstPause; ; try, pause = try+1, 2*pause {
		err := c.once(ctx, method, path, data, out)
		if err == nil || try == maxTries || !passing(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

func passing(err error) bool {
	if over, ok := bounded.As(err); ok {
		return over.Passing()
	}
	var refused *QdrantError
	if !errors.As(err, &refused) {
		return true // no answer
	}
	return slices.Contains([]int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout}, refused.Status)
}

func (c *qdrantClient) once(ctx context.Context, method, path string, data []byte, out any) error {
	ctx, cancel := context.WithTimeout(ctx, c.bounds)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("qdrant: %w", err)
	}
	if len(data) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		req.Header.Set("Api-Key", c.key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("qdrant: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // only read
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("qdrant: %s %s: %w", method, path, err)
	}
	if resp.StatusCode != http.StatusOK {
		return &QdrantError{Method: method, Path: path, Status: resp.StatusCode, Message: qdrantMessage(answer)}
	}
	if out == nil {
		return nil
	}
	envelope := struct {
		Result any `json:"result"`
	}{out}
	if err := json.Unmarshal(answer, &envelope); err != nil {
		return fmt.Errorf("qdrant: %s %s: invalid answer: %w", method, path, err)
	}
	return nil
}

// qdrantMessage returns the server's error text: {"status": {"error": "…"}}.
func qdrantMessage(answer []byte) string {
	var failure struct {
		Status struct {
			Error string `json:"error"`
		} `json:"status"`
	}
	text := strings.TrimSpace(string(answer))
	if json.Unmarshal(answer, &failure) == nil && failure.Status.Error != "" {
		text = failure.Status.Error
	}
	return document.Shorten(text, 300)
}

// qdrantURL checks the URL of a server. Its error does not contain a password.
func qdrantURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", errors.New("qdrant: the URL must be the server's root, like http://localhost:6333")
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

// ErrCollection is wrapped by OpenQdrant's error about a collection that Qdrant did not make.
var ErrCollection = errors.New("qdrant: unsuitable collection; name another one, or delete it")

// QdrantError is an unsuccessful answer of the Qdrant server.
type QdrantError struct {
	Method, Path string
	Status       int
	Message      string // the server's text, at most 300 characters
}

// Error returns the request, the status and the message.
func (e *QdrantError) Error() string {
	return fmt.Sprintf("qdrant: %s %s: HTTP %d: %s", e.Method, e.Path, e.Status, e.Message)
}

// The names in a collection.
const (
	vectorDense = "dense"
	vectorWords = "words"

	fieldID         = "id"
	fieldTitle      = "title"
	fieldNamespace  = "namespace"
	fieldType       = "type"
	fieldTags       = "tags"
	fieldAuthors    = "authors"
	fieldCategories = "categories"
	fieldUpdated    = "updated" // ms since 1970
	fieldHash       = "hash"
	fieldEmbeds     = "embeds"   // a hash of the dense vector's text
	fieldComplete   = "complete" // the point has a dense vector
	fieldRecord     = "record"   // the record as a JSON text, which preserves the digits of numbers
)

type object = map[string]any

func (x *Qdrant) prepare(ctx context.Context) error {
	var info collectionInfo
	err := x.client.call(ctx, http.MethodGet, x.path, nil, &info)
	var refused *QdrantError
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return x.create(ctx)
	}
	if err != nil {
		return err
	}
	if err := x.check(&info); err != nil {
		return err
	}
	return x.indexPayload(ctx, info.Schema)
}

type collectionInfo struct {
	Config struct {
		Params struct {
			Vectors map[string]struct {
				Size     int    `json:"size"`
				Distance string `json:"distance"`
			} `json:"vectors"`
			Sparse map[string]struct {
				Modifier string `json:"modifier"`
			} `json:"sparse_vectors"`
		} `json:"params"`
	} `json:"config"`
	Schema map[string]json.RawMessage `json:"payload_schema"` // has the indexed fields of the payload
}

func (x *Qdrant) check(info *collectionInfo) error {
	params := info.Config.Params
	if words, ok := params.Sparse[vectorWords]; !ok || words.Modifier != "idf" {
		return fmt.Errorf("%w: %q has no sparse vector %q with the modifier idf", ErrCollection, x.options.Collection, vectorWords)
	}
	if x.options.Embedder == nil {
		return nil
	}
	dense, ok := params.Vectors[vectorDense]
	switch {
	case !ok:
		return fmt.Errorf("%w: %q was made without an embedder and has no vector %q", ErrCollection, x.options.Collection, vectorDense)
	case dense.Distance != "Cosine":
		return fmt.Errorf("%w: the vectors of %q have the distance %s, not Cosine", ErrCollection, x.options.Collection, dense.Distance)
	}
	x.dimensions = dense.Size
	return nil
}

func (x *Qdrant) create(ctx context.Context) error {
	vectors := object{}
	if x.options.Embedder != nil {
		probe, err := x.options.Embedder.Embed(ctx, []string{"how many numbers"})
		if err == nil {
			err = CheckVectors(probe, 1)
		}
		if err != nil {
			return fmt.Errorf("qdrant: asking the embedder for the length of its vectors: %w", err)
		}
		x.dimensions = len(probe[0])
		vectors[vectorDense] = object{"size": x.dimensions, "distance": "Cosine"}
	}
	body := object{"vectors": vectors, "sparse_vectors": object{vectorWords: object{"modifier": "idf"}}}
	err := x.client.call(ctx, http.MethodPut, x.path, body, nil)
	var refused *QdrantError
	if errors.As(err, &refused) && (refused.Status == http.StatusConflict || refused.Status == http.StatusBadRequest) {
		// Another gateway may just have created it.
		var info collectionInfo
		if x.client.call(ctx, http.MethodGet, x.path, nil, &info) == nil {
			err = x.check(&info)
		}
	}
	if err != nil {
		return err
	}
	return x.indexPayload(ctx, nil)
}

// indexPayload makes the server index the fields of filters. An older collection may lack some.
func (x *Qdrant) indexPayload(ctx context.Context, indexed map[string]json.RawMessage) error {
	for field, schema := range map[string]string{
		fieldNamespace: "keyword", fieldType: "keyword", fieldTags: "keyword", fieldAuthors: "keyword",
		fieldCategories: "keyword",
		fieldUpdated:    "integer",
	} {
		if _, ok := indexed[field]; ok {
			continue
		}
		if err := x.client.call(ctx, http.MethodPut, x.path+"/index?wait=true",
			object{"field_name": field, "field_schema": schema}, nil); err != nil {
			return err
		}
	}
	return nil
}
