package server

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"voicegw/config"
	"voicegw/config/setting"
	"voicegw/internal/backends/kb"
	"voicegw/internal/testutil"
	"voicegw/internal/user"
	"voicegw/registry"
	"voicegw/store"
)

var quiet = slog.New(slog.DiscardHandler)

// embeddings is an endpoint that returns the same vector for every text and counts its requests.
func embeddings(t *testing.T, asked *atomic.Int64) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Model string
			Input []string
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil || request.Model != "small" || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("asked %s with %q: %v", request.Model, r.Header.Get("Authorization"), err)
		}
		asked.Add(int64(len(request.Input)))
		type item struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
			Object    string    `json:"object"`
		}
		answer := map[string]any{"object": "list", "model": "small", "usage": map[string]int{}}
		var data []item
		for i := range request.Input {
			data = append(data, item{i, []float32{0.6, 0.8}, "embedding"})
		}
		answer["data"] = data
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(srv.Close)
	return srv
}

// TestEmbeddingsAreUsed: the configured endpoint makes the vectors of records and queries; a second process takes those
// of the records from the cache.
func TestEmbeddingsAreUsed(t *testing.T) {
	var asked atomic.Int64
	srv := embeddings(t, &asked)
	cfg := config.Default()
	cfg.KB.Embeddings = config.Embeddings{
		BaseURL: srv.URL + "/v1", APIKey: setting.NewSecret("secret"), Model: "small",
		Cache: setting.Path(filepath.Join(t.TempDir(), "vectors")),
	}
	for process := 1; process <= 2; process++ {
		caps, err := openCapabilities(t.Context(), cfg, t.TempDir(), store.Options{Memory: true}, quiet)
		if err != nil {
			t.Fatal(err)
		}
		testutil.WaitUntil(t, "all vectors are made", func() bool {
			held, err := caps.kb.Held(t.Context())
			for _, h := range held {
				if !h.Complete {
					return false
				}
			}
			return err == nil && len(held) > 0
		})
		found, err := caps.kb.Search(t.Context(), kb.Query{Text: "opening hours"})
		if err != nil || !found.Hybrid || found.Degraded || len(found.Hits) == 0 {
			t.Errorf("process %d: %d hits, hybrid %t, degraded %t, %v", process, len(found.Hits), found.Hybrid, found.Degraded, err)
		}
		if err := caps.close(); err != nil {
			t.Error(err)
		}
		if n := asked.Swap(0); process == 1 && n < 10 || process == 2 && n != 1 {
			t.Errorf("process %d: %d texts were embedded", process, n)
		}
	}
}

// TestQdrantIsUsed: the configured server holds the index; if it refuses, the gateway does not start, and the error does
// not show the key.
func TestQdrantIsUsed(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("api-key") != "secret" || !strings.Contains(r.URL.Path, "/collections/mine") {
			t.Errorf("asked %s with %q", r.URL.Path, r.Header.Get("api-key"))
		}
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"status":{"error":"forbidden"}}`)
	}))
	defer srv.Close()
	cfg := config.Default()
	cfg.KB.Qdrant = config.Qdrant{URL: srv.URL, APIKey: setting.NewSecret("secret"), Collection: "mine"}
	caps, err := openCapabilities(t.Context(), cfg, t.TempDir(), store.Options{Memory: true}, quiet)
	if err == nil {
		t.Fatal(caps.close(), "a refusing server was accepted")
	}
	if !strings.Contains(err.Error(), "knowledge base") || strings.Contains(err.Error(), "secret") {
		t.Errorf("the error is %v", err)
	}
}

func TestBlockedUsers(t *testing.T) {
	caps, err := openCapabilities(t.Context(), config.Default(), t.TempDir(), store.Options{Memory: true}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer caps.close()
	until := time.Now().Add(time.Minute)
	if err := caps.store.Blocks.Block(t.Context(), "mallory", until); err != nil {
		t.Fatal(err)
	}
	if got, ok := caps.blocked(user.Must("mallory")); !ok || !got.Equal(until) {
		t.Errorf("%v, %t", got, ok)
	}
	if _, ok := caps.blocked(user.Must("ada")); ok {
		t.Error("another user is blocked")
	}
}

// TestBuildKnowsCapabilities: the build accepts exactly the capabilities that the program provides in each mode, and
// docs/tools-reference.md lists them.
func TestBuildKnowsCapabilities(t *testing.T) {
	caps, err := openCapabilities(t.Context(), config.Default(), t.TempDir(), store.Options{Memory: true}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer caps.close()
	options := caps.registryOptions(false)
	page, err := os.ReadFile("../../docs/tools-reference.md")
	if err != nil {
		t.Fatal(err)
	}
	for mode, types := range provided() {
		have := slices.Concat(options.SessionCapabilities, options.ModeCapabilities[mode], []reflect.Type{reflect.TypeFor[*registry.Snapshot]()}, registry.CallCapabilities())
		for _, c := range options.Capabilities {
			have = append(have, reflect.TypeOf(c))
		}
		for _, need := range types {
			if !strings.Contains(string(page), "`"+need.String()+"`") {
				t.Errorf("docs/tools-reference.md does not name %s", need)
			}
			if !slices.ContainsFunc(have, func(t reflect.Type) bool { return t.AssignableTo(need) }) {
				t.Errorf("%s: the build accepts %s, and the program does not provide it", mode, need)
			}
		}
		for _, has := range have {
			if !slices.ContainsFunc(types, has.AssignableTo) {
				t.Errorf("%s: the program provides %s, and the build does not know it", mode, has)
			}
		}
	}
}

// TestBlocksOfATool: a tool gets the errors of package registry, not those of the store, if a user cannot be blocked.
func TestBlocksOfATool(t *testing.T) {
	s, err := store.Open(t.Context(), store.Options{Memory: true, MostBlocks: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	var tools registry.Blocks = blocks{s.Blocks}
	until := time.Now().Add(time.Hour)
	if err := tools.Block(t.Context(), "", until); !errors.Is(err, registry.ErrUser) {
		t.Errorf("no user: %v", err)
	}
	if err := tools.Block(t.Context(), "ada", until); err != nil {
		t.Error(err)
	}
	if err := tools.Block(t.Context(), "eve", until); !errors.Is(err, registry.ErrFull) {
		t.Errorf("one more than the maximum: %v", err)
	}
}
