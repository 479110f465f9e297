package local

import (
	"context"
	"fmt"
	"time"

	"voicegw/kb"
)

// Search implements kb.Index.
func (x *Index) Search(ctx context.Context, q kb.Query) (kb.Results, error) {
	began := time.Now()
	if err := q.Check(); err != nil {
		return kb.Results{}, err
	}
	s, err := x.begin()
	if err != nil {
		return kb.Results{}, err
	}
	defer x.end(s)
	x.searches.Add(1)
	if q.Limit == 0 {
		q.Limit = kb.DefaultLimit
	}
	f := newFilter(&q)

	// The Embedder is far away: the words are looked up meanwhile. The answer
	// comes from that goroutine, once; nobody closes the channel.
	vector := make(chan []float32, 1)
	go func() { vector <- x.queryVector(ctx, s, q.Text) }()
	words, err := s.bestWords(ctx, x.ranker.QueryStems(q.Text), f)
	query := <-vector
	if err != nil {
		return kb.Results{}, searchError(err)
	}
	results := kb.Results{Hybrid: query != nil, Degraded: query == nil && x.hybrid(s)}
	var near []kb.Ranked
	if query != nil {
		if near, err = nearest(ctx, s.rows, f, query, x.options.MinCosine); err != nil {
			return kb.Results{}, searchError(err)
		}
	}
	if err := ctx.Err(); err != nil {
		return kb.Results{}, searchError(err)
	}
	results.Hits = x.ranker.Fuse(q.Text, words, near, q.Limit, func(id string) (kb.Record, bool) {
		e, ok := s.entries[id]
		if !ok {
			return kb.Record{}, false
		}
		return e.record, true
	})
	for i := range results.Hits {
		results.Hits[i].Snippet = x.ranker.Snippet(results.Hits[i].Record.Text, q.Text)
	}
	results.Took = time.Since(began)
	return results, nil
}

func searchError(err error) error { return fmt.Errorf("kb/local: search: %w", err) }

// hybrid says whether vectors would take part in a search, did the Embedder answer.
func (x *Index) hybrid(s *snapshot) bool { return x.options.Embedder != nil && len(s.rows) > 0 }

// queryVector embeds the query; nil when vectors take no part.
func (x *Index) queryVector(ctx context.Context, s *snapshot, text string) []float32 {
	if !x.hybrid(s) {
		return nil
	}
	vector := x.query.Query(ctx, text, s.dimensions())
	if vector == nil {
		return nil
	}
	return normalized(vector)
}
