package kb_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"voicegw/internal/backends/kb"
)

func openQdrant(t *testing.T, o kb.QdrantOptions) *kb.Qdrant {
	t.Helper()
	x, err := kb.OpenQdrant(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

func TestQdrantConforms(t *testing.T) {
	conforms(t, func(t *testing.T, embedder kb.Embedder) kb.Index {
		return openQdrant(t, kb.QdrantOptions{URL: newFake(t).URL, Embedder: embedder})
	})
}

// TestQdrantServerConforms runs when QDRANT_URL names a real server (and QDRANT_API_KEY its key, if needed); it makes
// collections named voicegw_test_… and deletes them.
func TestQdrantServerConforms(t *testing.T) {
	url := os.Getenv("QDRANT_URL")
	if url == "" {
		t.Skip("QDRANT_URL is not set")
	}
	key := os.Getenv("QDRANT_API_KEY")
	setup := server(url, key)
	conforms(t, setup)
	t.Run("relevance", func(t *testing.T) {
		for _, embedder := range []kb.Embedder{nil, &fakeEmbedder{}} {
			x := setup(t, embedder)
			r := measure(t, demo(t, x))
			t.Logf("embedder %v: recall@3 %.3f, MRR %.3f", embedder != nil, r.RecallAt3, r.MRR)
		}
	})
}

func server(url, key string) opener {
	n := 0
	return func(t *testing.T, embedder kb.Embedder) kb.Index {
		t.Helper()
		n++
		name := fmt.Sprintf("voicegw_test_%d_%d", time.Now().UnixNano(), n)
		x := openQdrant(t, kb.QdrantOptions{URL: url, APIKey: key, Collection: name, Embedder: embedder})
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodDelete, strings.TrimSuffix(url, "/")+"/collections/"+name, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Api-Key", key)
			client := &http.Client{}
			defer client.CloseIdleConnections()
			resp, err := client.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("deleting %s: %s, %v", name, resp.Status, err)
			}
		})
		return x
	}
}

// TestSameRelevanceAsLocal: both indexes rank alike: neither answers the judged queries much better.
func TestSameRelevanceAsLocal(t *testing.T) {
	for _, embedder := range []kb.Embedder{nil, &fakeEmbedder{}} {
		want := measure(t, demo(t, openLocal(t, embedder)))
		got := measure(t, demo(t, openQdrant(t, kb.QdrantOptions{URL: newFake(t).URL, Embedder: embedder})))
		t.Logf("with an embedder %v: recall@3 %.3f and MRR %.3f; local %.3f and %.3f", embedder != nil, got.RecallAt3, got.MRR, want.RecallAt3, want.MRR)
		if got.RecallAt3 < want.RecallAt3-0.04 || got.MRR < want.MRR-0.04 {
			t.Errorf("recall@3 %.3f and MRR %.3f are worse than %.3f and %.3f of the local index", got.RecallAt3, got.MRR, want.RecallAt3, want.MRR)
		}
	}
}

func TestCollectionIsMadeOnce(t *testing.T) {
	f := newFake(t)
	f.key = "secret"
	with := func(change func(*kb.QdrantOptions)) (*kb.Qdrant, error) {
		o := kb.QdrantOptions{URL: f.URL + "/", APIKey: "secret", Collection: "a b", Embedder: &fakeEmbedder{}}
		if change != nil {
			change(&o)
		}
		return kb.OpenQdrant(t.Context(), o)
	}
	for range 2 {
		x, err := with(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.asked("PUT /collections/a%20b"); n != 7 {
		t.Errorf("%d requests made the collection and its six indexes, once", n)
	}
	if x, err := with(func(o *kb.QdrantOptions) { o.Collection, o.Embedder = "words", nil }); err != nil {
		t.Error(err)
	} else if err := x.Close(); err != nil {
		t.Error(err)
	}
	if _, err := with(func(o *kb.QdrantOptions) { o.Collection = "words" }); !errors.Is(err, kb.ErrCollection) {
		t.Errorf("a collection without dense vectors: %v", err)
	}
	f.collections["other"] = &fakeCollection{params: map[string]any{"vectors": map[string]any{}}}
	if _, err := with(func(o *kb.QdrantOptions) { o.Collection = "other" }); !errors.Is(err, kb.ErrCollection) {
		t.Errorf("a foreign collection: %v", err)
	}
	_, err := with(func(o *kb.QdrantOptions) { o.APIKey = "wrong-key" })
	var refused *kb.QdrantError
	if !errors.As(err, &refused) || refused.Status != http.StatusForbidden || strings.Contains(err.Error(), "wrong-key") {
		t.Errorf("a wrong key: %v", err)
	}
	failing := &fakeEmbedder{}
	failing.Fail(errEmbedder)
	if _, err := with(func(o *kb.QdrantOptions) { o.Collection, o.Embedder = "new", failing }); !errors.Is(err, errEmbedder) {
		t.Errorf("an embedder without a vector length: %v", err)
	}
	for _, url := range []string{"", "localhost:6333", "ftp://host", "http://"} {
		if _, err := with(func(o *kb.QdrantOptions) { o.URL = url }); err == nil {
			t.Errorf("the URL %q was accepted", url)
		}
	}
}

func TestRetries(t *testing.T) {
	f := newFake(t)
	x := openQdrant(t, kb.QdrantOptions{URL: f.URL})
	stumbles := 2
	f.mu.Lock()
	f.disturb = func(w http.ResponseWriter, _ *http.Request) bool {
		if stumbles--; stumbles < 0 {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	f.mu.Unlock()
	if err := x.Apply(t.Context(), kb.Batch{Upsert: []kb.Record{record("doc:a", "Anchor", "")}}); err != nil {
		t.Error(err)
	}
	f.mu.Lock()
	stumbles = 3
	f.mu.Unlock()
	var refused *kb.QdrantError
	if _, err := x.Search(t.Context(), kb.Query{Text: "anything"}); !errors.As(err, &refused) || refused.Status != http.StatusServiceUnavailable {
		t.Errorf("an unreachable server: %v", err)
	}
	f.mu.Lock()
	stumbles, f.disturb = 0, func(w http.ResponseWriter, _ *http.Request) bool {
		fmt.Fprint(w, "<html>")
		return true
	}
	f.mu.Unlock()
	if _, err := x.Search(t.Context(), kb.Query{Text: "anything"}); err == nil || !strings.Contains(err.Error(), "invalid answer") {
		t.Errorf("an answer that is not JSON: %v", err)
	}
}

func TestManyRecordsAreSentInParts(t *testing.T) {
	f := newFake(t)
	x := openQdrant(t, kb.QdrantOptions{URL: f.URL})
	var records []kb.Record
	for i := range 2500 {
		records = append(records, record(fmt.Sprintf("doc:r%d", i), "Anchor", fmt.Sprintf("Number %d.", i)))
	}
	if err := x.Apply(t.Context(), kb.Batch{Upsert: records}); err != nil {
		t.Fatal(err)
	}
	if n := f.asked("PUT /collections/voicegw_kb/points?"); n != 25 {
		t.Errorf("%d requests", n)
	}
	held, err := x.Held(t.Context())
	if err != nil || len(held) != len(records) {
		t.Fatalf("%d of %d are stored, %v", len(held), len(records), err)
	}
	for _, r := range records {
		if held[r.ID].Hash != r.Hash() {
			t.Fatalf("%s has another hash", r.ID)
		}
	}
	if n := f.asked("POST /collections/voicegw_kb/points/scroll"); n != 3 {
		t.Errorf("%d pages", n)
	}
	var ids []string
	for _, r := range records {
		ids = append(ids, r.ID)
	}
	if err := x.Apply(t.Context(), kb.Batch{Delete: ids[1:]}); err != nil {
		t.Fatal(err)
	}
	if held, err = x.Held(t.Context()); err != nil || len(held) != 1 {
		t.Errorf("%d are stored after all but one were deleted, %v", len(held), err)
	}
}

func TestCloseWaitsForAServerSearch(t *testing.T) {
	f := newFake(t)
	x := openQdrant(t, kb.QdrantOptions{URL: f.URL})
	begun, let := make(chan struct{}), make(chan struct{})
	f.mu.Lock()
	f.disturb = func(http.ResponseWriter, *http.Request) bool {
		close(begun)
		<-let
		f.disturb = nil
		return false
	}
	f.mu.Unlock()
	found, closed := make(chan error), make(chan error)
	go func() {
		_, err := x.Search(t.Context(), kb.Query{Text: "anchor"})
		found <- err
	}()
	<-begun
	go func() { closed <- x.Close() }()
	for { // until Close has begun: then the server gets no more requests
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := x.Held(ctx); errors.Is(err, kb.ErrClosed) {
			break
		}
	}
	select {
	case <-closed:
		t.Error("Close did not wait")
		close(let)
		<-found
		return
	default:
	}
	close(let)
	if err := <-found; err != nil {
		t.Error(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
