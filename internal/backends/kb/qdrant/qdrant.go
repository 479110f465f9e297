// Package qdrant is the knowledge base's index in a Qdrant server, for many records or for several gateways that share
// them. It uses Qdrant's REST API (https://api.qdrant.tech, version 1.10 and later, read 2026-11-20).
//
// Words. Some versions of Qdrant cannot rank by words, so this package computes a sparse vector for each record: BM25's
// weight of each stem, under a hash of the stem. Qdrant multiplies it by its idf ("modifier": "idf"). The sum is BM25
// with constant mean lengths of titles, tags and texts, because no client knows those of a shared collection. So the
// ranking needs no Embedder and resembles that of package local.
//
// Vectors. Each record has a dense vector. Qdrant compares by cosine, in large collections approximately.
//
// One request returns both rankings, and this package fuses them. Qdrant's own fusion hides the scores and uses the k 2
// instead of 60.
//
// Compared with package local, an Apply of many records becomes visible in parts, new records before the removal of old
// ones, and in a cluster a search may use a replica that lags. All sources of a collection must read the same folder.
package qdrant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"voicegw/internal/backends/kb"
	"voicegw/internal/bounded"
)

// Options configure an Index.
type Options struct {
	URL        string      // the server's root, like http://localhost:6333. Required.
	APIKey     string      // sent if it is not empty
	Collection string      // contains only this index. Open creates it if it is missing. Empty means "voicegw_kb".
	Embedder   kb.Embedder // makes the dense vectors. Nil means ranking only by words. Close does not close it.
	Language   string      // the argument of kb.NewRanker
	// Synonyms is called for every search, possibly concurrently. It may be nil and may return nil.
	Synonyms func() *kb.Synonyms
	Timeout  time.Duration // bounds one request. Zero means 10 s.
	Logger   *slog.Logger  // gets at most one line a minute while the Embedder fails. Nil means no logging.
}

// Index is a kb.Index in a Qdrant server.
type Index struct {
	// Fixed after Open.
	options    Options
	client     *client
	ranker     *kb.Ranker
	path       string // of the collection
	dimensions int
	query      *kb.Guard // nil without an Embedder, like load
	load       *kb.Guard

	mu     sync.Mutex // guards the following field
	closed bool
	calls  sync.WaitGroup // Add is called under mu while not closed
}

var _ kb.Index = (*Index)(nil)

// Open connects to the server and creates a missing collection. An error about an unsuitable one wraps ErrCollection.
func Open(ctx context.Context, o Options) (*Index, error) {
	base, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	o.Collection, o.Timeout = cmp.Or(o.Collection, "voicegw_kb"), cmp.Or(o.Timeout, 10*time.Second)
	httpClient := bounded.Client(&http.Client{Transport: bounded.NewTransport()}, limits(o.Timeout))
	ranker, err := kb.NewRanker(o.Language)
	if err != nil {
		return nil, fmt.Errorf("qdrant: %w", err)
	}
	x := &Index{
		options: o, ranker: ranker, path: "/collections/" + url.PathEscape(o.Collection),
		client: &client{base: base, key: o.APIKey, http: httpClient, bounds: o.Timeout},
	}
	x.query, x.load = kb.NewGuards(o.Embedder, o.Logger)
	if err := x.prepare(ctx); err != nil {
		x.client.http.CloseIdleConnections()
		return nil, err
	}
	return x, nil
}

func (x *Index) begin() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return kb.ErrClosed
	}
	x.calls.Add(1)
	return nil
}

// Close implements kb.Index. The collection stays.
func (x *Index) Close() error {
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.calls.Wait()
	x.client.http.CloseIdleConnections()
	return nil
}

// Search implements kb.Index.
func (x *Index) Search(ctx context.Context, q kb.Query) (kb.Results, error) {
	began := time.Now()
	if err := q.Check(); err != nil {
		return kb.Results{}, err
	}
	if err := x.begin(); err != nil {
		return kb.Results{}, err
	}
	defer x.calls.Done()
	q.Limit = cmp.Or(q.Limit, kb.DefaultLimit)
	var vector []float32
	if x.query != nil {
		vector = x.query.Query(ctx, q.Text, x.dimensions)
	}
	wordings, near, titles, err := x.rankings(ctx, &q, vector)
	if err != nil {
		return kb.Results{}, err
	}
	// If only words find records, no record has a vector, because vectors find even distant ones.
	missing := len(near) == 0 && slices.ContainsFunc(wordings, func(w kb.Wording) bool { return len(w.Ranked) > 0 })
	results := kb.Results{Hybrid: vector != nil && !missing}
	results.Degraded = !results.Hybrid && x.query != nil
	hits := x.ranker.Fuse(wordings, near, q.Limit, func(id string) (kb.Record, bool) {
		title, ok := titles[id]
		return kb.Record{ID: id, Title: title}, ok
	})
	if results.Hits, err = x.complete(ctx, hits); err != nil {
		return kb.Results{}, err
	}
	for i := range results.Hits {
		results.Hits[i].Snippet = x.ranker.Snippet(results.Hits[i].Record.Text, q.Text, nil)
	}
	results.Took = time.Since(began)
	return results, nil
}

// complete sets the whole records of the hits, and drops hits whose record no longer exists.
func (x *Index) complete(ctx context.Context, hits []kb.Hit) ([]kb.Hit, error) {
	if len(hits) == 0 {
		return nil, nil
	}
	ids := make([]string, len(hits))
	for i := range hits {
		ids[i] = hits[i].Record.ID
	}
	records, err := x.fetch(ctx, ids)
	if err != nil {
		return nil, err
	}
	kept := hits[:0]
	for _, h := range hits {
		if rec, ok := records[h.Record.ID]; ok {
			h.Record = rec
			kept = append(kept, h)
		}
	}
	return kept, nil
}

// Get implements kb.Index.
func (x *Index) Get(ctx context.Context, ids []string) (found []kb.Record, missing []string, err error) {
	if err := x.begin(); err != nil {
		return nil, nil, err
	}
	defer x.calls.Done()
	records, err := x.fetch(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	found, missing = kb.Pick(ids, func(id string) (kb.Record, bool) {
		record, ok := records[id]
		return record, ok
	})
	return found, missing, nil
}

var errPayload = errors.New("qdrant: a point has an invalid record; another program may have written it")

// Names implements kb.Index. It requests the persons' records, and the values of authors and categories.
func (x *Index) Names(ctx context.Context, namespaces []kb.Namespace) (kb.Names, error) {
	if err := x.begin(); err != nil {
		return kb.Names{}, err
	}
	defer x.calls.Done()
	people := map[string]string{}
	persons := filterOf(&kb.Query{Namespaces: namespaces, Types: []kb.Type{kb.TypePerson}})
	_, err := x.scroll(ctx, persons, []string{payloadID, payloadTitle}, kb.MaxNames/pageSize, func(p point) {
		people[p.Payload.ID] = p.Payload.Title
	})
	if err != nil {
		return kb.Names{}, err
	}
	authors, err := x.values(ctx, payloadAuthors, namespaces)
	if err != nil {
		return kb.Names{}, err
	}
	for _, id := range authors {
		people[id] = cmp.Or(people[id], "")
	}
	categories, err := x.values(ctx, payloadCategories, namespaces)
	if err != nil {
		return kb.Names{}, err
	}
	return kb.NewNames(people, categories), nil
}

func (x *Index) values(ctx context.Context, key string, namespaces []kb.Namespace) ([]string, error) {
	body := object{"key": key, "limit": kb.MaxNames}
	if filter := filterOf(&kb.Query{Namespaces: namespaces}); filter != nil {
		body["filter"] = filter
	}
	var answer struct {
		Hits []struct {
			Value string `json:"value"`
		} `json:"hits"`
	}
	if err := x.client.call(ctx, http.MethodPost, x.path+"/facet", body, &answer); err != nil {
		return nil, err
	}
	values := make([]string, 0, len(answer.Hits))
	for _, h := range answer.Hits {
		values = append(values, h.Value)
	}
	return values, nil
}
