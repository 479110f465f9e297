package kb

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

	"voicegw/internal/bounded"
)

// QdrantOptions configure a Qdrant.
type QdrantOptions struct {
	URL        string   // the server's root, like http://localhost:6333. Required.
	APIKey     string   // sent if it is not empty
	Collection string   // contains only this index. OpenQdrant creates it if it is missing. Empty means "voicegw_kb".
	Embedder   Embedder // makes the dense vectors. Nil means ranking only by words. Close does not close it.
	Language   string   // the argument of NewRanker
	// Synonyms is called for every search, possibly concurrently. It may be nil and may return nil.
	Synonyms func() *Synonyms
	Timeout  time.Duration // bounds one request. Zero means 10 s.
	Logger   *slog.Logger  // gets at most one line a minute while the Embedder fails. Nil means no logging.
}

// Qdrant is an [Index] in a Qdrant server, for many records or for several gateways that share them. It uses Qdrant's
// REST API (https://api.qdrant.tech, version 1.10 and later, read 2026-11-20).
//
// Words. Some versions of Qdrant cannot rank by words, so the gateway computes a sparse vector for each record: BM25's
// weight of each stem, under a hash of the stem. Qdrant multiplies it by its idf ("modifier": "idf"). The sum is BM25
// with constant mean lengths of titles, tags and texts, because no client knows those of a shared collection. So the
// ranking needs no Embedder and resembles that of package local.
//
// Vectors. Each record has a dense vector. Qdrant compares by cosine, in large collections approximately.
//
// One request returns both rankings, and the gateway fuses them. Qdrant's own fusion hides the scores and uses the k 2
// instead of 60.
//
// Compared with package local, an Apply of many records becomes visible in parts, new records before the removal of old
// ones, and in a cluster a search may use a replica that lags. All sources of a collection must read the same folder.
type Qdrant struct {
	// Fixed after OpenQdrant.
	options    QdrantOptions
	client     *qdrantClient
	ranker     *Ranker
	path       string // of the collection
	dimensions int
	query      *Guard // nil without an Embedder, like load
	load       *Guard

	mu     sync.Mutex // guards the following field
	closed bool
	calls  sync.WaitGroup // Add is called under mu while not closed
}

var _ Index = (*Qdrant)(nil)

// OpenQdrant connects to the server and creates a missing collection. An error about an unsuitable one wraps ErrCollection.
func OpenQdrant(ctx context.Context, o QdrantOptions) (*Qdrant, error) {
	base, err := qdrantURL(o.URL)
	if err != nil {
		return nil, err
	}
	o.Collection, o.Timeout = cmp.Or(o.Collection, "voicegw_kb"), cmp.Or(o.Timeout, 10*time.Second)
	httpClient := bounded.Client(&http.Client{Transport: bounded.NewTransport()}, qdrantLimits(o.Timeout))
	ranker, err := NewRanker(o.Language)
	if err != nil {
		return nil, fmt.Errorf("qdrant: %w", err)
	}
	x := &Qdrant{
		options: o, ranker: ranker, path: "/collections/" + url.PathEscape(o.Collection),
		client: &qdrantClient{base: base, key: o.APIKey, http: httpClient, bounds: o.Timeout},
	}
	x.query, x.load = NewGuards(o.Embedder, o.Logger)
	if err := x.prepare(ctx); err != nil {
		x.client.http.CloseIdleConnections()
		return nil, err
	}
	return x, nil
}

func (x *Qdrant) begin() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return ErrClosed
	}
	x.calls.Add(1)
	return nil
}

// Close implements Index. The collection stays.
func (x *Qdrant) Close() error {
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.calls.Wait()
	x.client.http.CloseIdleConnections()
	return nil
}

// Search implements Index.
func (x *Qdrant) Search(ctx context.Context, q Query) (Results, error) {
	began := time.Now()
	if err := q.Check(); err != nil {
		return Results{}, err
	}
	if err := x.begin(); err != nil {
		return Results{}, err
	}
	defer x.calls.Done()
	q.Limit = cmp.Or(q.Limit, DefaultLimit)
	var vector []float32
	if x.query != nil {
		vector = x.query.Query(ctx, q.Text, x.dimensions)
	}
	wordings, near, titles, err := x.rankings(ctx, &q, vector)
	if err != nil {
		return Results{}, err
	}
	// If only words find records, no record has a vector, because vectors find even distant ones.
	missing := len(near) == 0 && slices.ContainsFunc(wordings, func(w Wording) bool { return len(w.Ranked) > 0 })
	results := Results{Hybrid: vector != nil && !missing}
	results.Degraded = !results.Hybrid && x.query != nil
	hits := x.ranker.Fuse(wordings, near, q.Limit, func(id string) (Record, bool) {
		title, ok := titles[id]
		return Record{ID: id, Title: title}, ok
	})
	if results.Hits, err = x.complete(ctx, hits); err != nil {
		return Results{}, err
	}
	for i := range results.Hits {
		results.Hits[i].Snippet = x.ranker.Snippet(results.Hits[i].Record.Text, q.Text, nil)
	}
	results.Took = time.Since(began)
	return results, nil
}

// complete sets the whole records of the hits, and drops hits whose record no longer exists.
func (x *Qdrant) complete(ctx context.Context, hits []Hit) ([]Hit, error) {
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

// Get implements Index.
func (x *Qdrant) Get(ctx context.Context, ids []string) (found []Record, missing []string, err error) {
	if err := x.begin(); err != nil {
		return nil, nil, err
	}
	defer x.calls.Done()
	records, err := x.fetch(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	found, missing = Pick(ids, func(id string) (Record, bool) {
		record, ok := records[id]
		return record, ok
	})
	return found, missing, nil
}

var errPayload = errors.New("qdrant: a point has an invalid record; another program may have written it")

// Names implements Index. It requests the persons' records, and the values of authors and categories.
func (x *Qdrant) Names(ctx context.Context, namespaces []Namespace) (Names, error) {
	if err := x.begin(); err != nil {
		return Names{}, err
	}
	defer x.calls.Done()
	people := map[string]string{}
	persons := filterOf(&Query{Namespaces: namespaces, Types: []Type{TypePerson}})
	_, err := x.scroll(ctx, persons, []string{fieldID, fieldTitle}, MaxNames/pageSize, func(p qdrantPoint) {
		people[p.Payload.ID] = p.Payload.Title
	})
	if err != nil {
		return Names{}, err
	}
	authors, err := x.values(ctx, fieldAuthors, namespaces)
	if err != nil {
		return Names{}, err
	}
	for _, id := range authors {
		people[id] = cmp.Or(people[id], "")
	}
	categories, err := x.values(ctx, fieldCategories, namespaces)
	if err != nil {
		return Names{}, err
	}
	return NewNames(people, categories), nil
}

func (x *Qdrant) values(ctx context.Context, key string, namespaces []Namespace) ([]string, error) {
	body := object{"key": key, "limit": MaxNames}
	if filter := filterOf(&Query{Namespaces: namespaces}); filter != nil {
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
