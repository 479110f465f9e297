package kb_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/backends/kb"
)

// endpoint is a fake of the embeddings API: a text's vector is its length and 1.
type endpoint struct {
	*httptest.Server

	mu       sync.Mutex
	requests []request
	auth     []string
	refuse   []func(http.ResponseWriter) // the answers to the next requests
}

type request struct {
	Model  string   `json:"model"`
	Input  []string `json:"input"`
	Format string   `json:"encoding_format"`
}

func newEndpoint(t *testing.T, refuse ...func(http.ResponseWriter)) *endpoint {
	t.Helper()
	e := &endpoint{refuse: refuse}
	e.Server = httptest.NewServer(e)
	t.Cleanup(e.Server.Close)
	return e
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var req request
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || r.URL.Path != "/v1/embeddings" {
		http.Error(w, "not an embeddings request", http.StatusNotFound)
		return
	}
	e.requests = append(e.requests, req)
	e.auth = append(e.auth, r.Header.Get("Authorization"))
	if len(e.refuse) > 0 {
		refuse := e.refuse[0]
		e.refuse = e.refuse[1:]
		refuse(w)
		return
	}
	type item struct {
		Index     int       `json:"index"`
		Object    string    `json:"object"`
		Embedding []float64 `json:"embedding"`
	}
	var data []item
	for i := range req.Input { // the last first: the index counts, not the position
		i = len(req.Input) - 1 - i
		data = append(data, item{i, "embedding", []float64{float64(len(req.Input[i])), 1}})
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(map[string]any{"object": "list", "model": req.Model, "data": data}); err != nil {
		panic(err)
	}
}

func refusal(status int, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After-Ms", "1")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func (e *endpoint) dial(change func(*kb.EmbeddingOptions)) *kb.EmbeddingClient {
	o := kb.EmbeddingOptions{BaseURL: e.URL + "/v1", APIKey: "sk-secret", Model: "m"}
	if change != nil {
		change(&o)
	}
	return kb.NewEmbeddingClient(o)
}

func TestBatchesKeepTheOrder(t *testing.T) {
	e := newEndpoint(t)
	c := e.dial(nil)
	var texts []string
	var want [][]float32
	for n := range 97 {
		texts = append(texts, strings.Repeat("a", n+1))
		want = append(want, []float32{float32(n + 1), 1})
	}
	got, err := c.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	one, err := kb.EmbedQuery(t.Context(), c, "q")
	if err != nil || one[0] != 1 {
		t.Errorf("the query's vector is %v, %v", one, err)
	}
	requests := []request{
		{Model: "m", Input: texts[:96], Format: "float"},
		{Model: "m", Input: texts[96:], Format: "float"},
		{Model: "m", Input: []string{"q"}, Format: "float"},
	}
	if diff := cmp.Diff(requests, e.requests); diff != "" {
		t.Error(diff)
	}
	if e.auth[0] != "Bearer sk-secret" {
		t.Errorf("authorization was %q", e.auth[0])
	}
}

func TestNoKeyHeader(t *testing.T) {
	e := newEndpoint(t)
	if _, err := kb.EmbedQuery(t.Context(), e.dial(func(o *kb.EmbeddingOptions) { o.APIKey = "" }), "q"); err != nil {
		t.Fatal(err)
	}
	if e.auth[0] != "" {
		t.Errorf("authorization was %q", e.auth[0])
	}
}

func TestTriesAgain(t *testing.T) {
	for _, status := range []int{429, 500, 503} {
		e := newEndpoint(t, refusal(status, `{"error":{"message":"slow down"}}`), refusal(status, `{}`))
		if _, err := kb.EmbedQuery(t.Context(), e.dial(nil), "q"); err != nil {
			t.Errorf("after two answers %d: %v", status, err)
		}
		if len(e.requests) != 3 {
			t.Errorf("%d requests", len(e.requests))
		}
	}
}

func TestGivesUp(t *testing.T) {
	e := newEndpoint(t, refusal(500, `{}`), refusal(500, `{}`))
	_, err := kb.EmbedQuery(t.Context(), e.dial(func(o *kb.EmbeddingOptions) { o.Retries = 1 }), "q")
	if err == nil || !strings.HasPrefix(err.Error(), "kb: embeddings: HTTP 500 ") || len(e.requests) != 2 {
		t.Errorf("%v after %d requests", err, len(e.requests))
	}
}

func TestErrorsHideTheKey(t *testing.T) {
	e := newEndpoint(t, refusal(401, `{"error":{"message":"wrong key sk-secret, text `+strings.Repeat("x", 500)+`","code":"invalid_api_key"}}`))
	_, err := e.dial(nil).Embed(t.Context(), []string{"a"})
	if err == nil || !strings.HasPrefix(err.Error(), "kb: embeddings: HTTP 401 invalid_api_key: ") {
		t.Fatalf("%v", err)
	}
	if strings.Contains(err.Error(), "sk-secret") || len(err.Error()) > 300 {
		t.Errorf("the error is %v", err)
	}
	if len(e.requests) != 1 {
		t.Errorf("a refusal was tried %d times", len(e.requests))
	}
}

func TestInvalidAnswers(t *testing.T) {
	for name, body := range map[string]string{
		"too few":      `{"data":[]}`,
		"twice one":    `{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`,
		"out of range": `{"data":[{"index":5,"embedding":[1]},{"index":-1,"embedding":[1]}]}`,
		"no numbers":   `{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[]}]}`,
		"lengths":      `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`,
		"zero":         `{"data":[{"index":0,"embedding":[0]},{"index":1,"embedding":[1]}]}`,
	} {
		e := newEndpoint(t, refusal(200, body))
		if _, err := e.dial(nil).Embed(t.Context(), []string{"a", "b"}); !errors.Is(err, kb.ErrVectors) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestContext(t *testing.T) {
	e := newEndpoint(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := kb.EmbedQuery(ctx, e.dial(nil), "q"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
