package local

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"voicegw/internal/backends/kb"
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
	defer x.calls.Done()
	q.Limit = cmp.Or(q.Limit, kb.DefaultLimit)
	f := newFilter(&q)

	// The lookup of words runs during the call of the Embedder. The goroutine sends once; nothing closes the channel.
	vector := make(chan []float32, 1)
	go func() { vector <- x.queryVector(ctx, s, q.Text) }()
	wordings, terms, err := x.wordings(ctx, s, &q, f)
	query := <-vector
	if err != nil {
		return kb.Results{}, searchError(err)
	}
	results := kb.Results{Hybrid: query != nil, Degraded: query == nil && x.options.Embedder != nil}
	var near []kb.Ranked
	if query != nil {
		if near, err = nearest(ctx, s.rows, f, query); err != nil {
			return kb.Results{}, searchError(err)
		}
	}
	if err := ctx.Err(); err != nil {
		return kb.Results{}, searchError(err)
	}
	results.Hits = x.ranker.Fuse(wordings, near, q.Limit, s.record)
	for i := range results.Hits {
		results.Hits[i].Snippet = x.ranker.Snippet(results.Hits[i].Record.Text, q.Text, terms)
	}
	results.Took = time.Since(began)
	return results, nil
}

// wordings ranks the records by the words of the question and of its alternatives, and returns
// the terms of the search.
func (x *Index) wordings(ctx context.Context, s *snapshot, q *kb.Query, f *filter) ([]kb.Wording, map[string]bool, error) {
	var synonyms *kb.Synonyms
	if x.options.Synonyms != nil {
		synonyms = x.options.Synonyms()
	}
	all := kb.Wordings(q, synonyms)
	terms := map[string]bool{}
	for i := range all {
		groups := x.store.words.expand(x.ranker, all[i].Text, len(s.entries), synonyms)
		for _, g := range groups {
			for _, one := range g.variants {
				terms[one.term] = true
			}
		}
		var err error
		if all[i].Ranked, err = s.bestWords(ctx, groups, f, maxVisits/len(all)); err != nil {
			return nil, nil, err
		}
	}
	return all, terms, nil
}

func searchError(err error) error { return fmt.Errorf("kb/local: search: %w", err) }

// queryVector embeds the query; nil if vectors take no part.
func (x *Index) queryVector(ctx context.Context, s *snapshot, text string) []float32 {
	if x.query == nil || len(s.rows) == 0 {
		return nil
	}
	vector := x.query.Query(ctx, text, s.dimensions())
	if vector == nil {
		return nil
	}
	return normalized(vector)
}
