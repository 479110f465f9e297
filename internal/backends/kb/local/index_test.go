package local_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"voicegw/internal/backends/kb"
	"voicegw/internal/backends/kb/local"
)

func openIn(t *testing.T, o local.Options) *local.Index {
	t.Helper()
	x, err := local.Open(o)
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

func record(id, title, text string) kb.Record {
	r := kb.Record{ID: id, Title: title, Text: text, LastUpdated: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)}
	r.Normalize()
	return r
}

func put(t *testing.T, x kb.Index, records ...kb.Record) {
	t.Helper()
	if err := x.Apply(t.Context(), kb.Batch{Upsert: records}); err != nil {
		t.Fatal(err)
	}
}

func find(t *testing.T, x kb.Index, q kb.Query) []string {
	t.Helper()
	results, err := x.Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, h := range results.Hits {
		ids = append(ids, h.Record.ID)
	}
	return ids
}

// TestApplyIsAtomic: a search sees all of an Apply or nothing of it, however large it is.
func TestApplyIsAtomic(t *testing.T) {
	x := openIn(t, local.Options{Embedder: random{8}})
	generation := func(n int) []kb.Record {
		var all []kb.Record
		for i := range 20 {
			all = append(all, record(fmt.Sprintf("doc:d%02d", i), fmt.Sprintf("Generation g%d", n), "Anchor."))
		}
		return all
	}
	put(t, x, generation(0)...)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for ctx.Err() == nil {
				results, err := x.Search(ctx, kb.Query{Text: "anchor", Limit: 50})
				if errors.Is(err, context.Canceled) {
					return
				}
				if err != nil || len(results.Hits) != 20 {
					t.Errorf("%d hits, %v", len(results.Hits), err)
					return
				}
				for _, h := range results.Hits {
					if h.Record.Title != results.Hits[0].Record.Title {
						t.Errorf("%q and %q in one answer", h.Record.Title, results.Hits[0].Record.Title)
						return
					}
				}
			}
		})
	}
	for n := range 155 { // the numbers are compacted during the searches
		put(t, x, generation(n+1)...)
	}
	stop()
	wg.Wait()
}

// TestManySmallAppliesStayFast: removed records do not accumulate, and the others are found under their new numbers.
func TestManySmallAppliesStayFast(t *testing.T) {
	x := openIn(t, local.Options{})
	put(t, x, makeRecords(300)...)
	for i := range 4000 {
		put(t, x, record(fmt.Sprintf("doc:new%d", i%90), fmt.Sprintf("Novelty v%d", i), "Anchor."))
		if i%3 == 0 {
			if err := x.Apply(t.Context(), kb.Batch{Delete: []string{fmt.Sprintf("doc:new%d", i%7)}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := x.Numbers(); n > 2000 {
		t.Errorf("%d numbers for some 400 records after 4000 small changes", n)
	}
	held, err := x.Held(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := find(t, x, kb.Query{Text: "novelty", Limit: 50})
	if len(got) != 50 || len(held) <= 300+50 {
		t.Errorf("%d hits, %d stored", len(got), len(held))
	}
	for _, id := range []string{"doc:new45", "doc:new19"} { // the last versions are found, the old ones are not
		found, _, err := x.Get(t.Context(), []string{id})
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		version := found[0].Title[len("Novelty "):]
		if hits := find(t, x, kb.Query{Text: version}); !slices.Contains(hits, id) {
			t.Errorf("%s is not found by %s: %v", id, version, hits)
		}
	}
}

// TestARecordIsRemovedOnce: an id listed twice removes its record once, and the words of the others keep their weight.
func TestARecordIsRemovedOnce(t *testing.T) {
	x := openIn(t, local.Options{})
	put(t, x, record("doc:a", "Anchor", ""), record("doc:b", "Anchor", ""), record("doc:c", "Boat", ""))
	if err := x.Apply(t.Context(), kb.Batch{Delete: []string{"doc:a", "doc:a"}}); err != nil {
		t.Fatal(err)
	}
	if got := find(t, x, kb.Query{Text: "anchor"}); !slices.Equal(got, []string{"doc:b"}) {
		t.Errorf("found %v", got)
	}
}

// TestCancelledApplyChangesNothing: an Apply that is cancelled half-way changes nothing.
func TestCancelledApplyChangesNothing(t *testing.T) {
	x := openIn(t, local.Options{})
	old := record("doc:a", "Anchor", "")
	put(t, x, old, record("doc:b", "Boat", ""))
	ctx := &countdown{Context: t.Context(), left: 2}
	records := append(makeRecords(4500), record("doc:a", "Lantern", ""))
	err := x.Apply(ctx, kb.Batch{Upsert: records, Delete: []string{"doc:b"}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("%v; the test must end the context between two batches", err)
	}
	if held, err := x.Held(t.Context()); err != nil || len(held) != 2 {
		t.Errorf("%d records, %v", len(held), err)
	}
	if got := find(t, x, kb.Query{Text: "anchor boat lantern"}); !slices.Equal(got, []string{"doc:a", "doc:b"}) {
		t.Errorf("found %v", got)
	}
	put(t, x, record("doc:c", "Boat", ""))
	if got := find(t, x, kb.Query{Text: "boat"}); !slices.Equal(got, []string{"doc:b", "doc:c"}) {
		t.Errorf("found %v", got)
	}
}

// countdown is a context that ends after a number of calls of Err.
type countdown struct {
	context.Context
	mu   sync.Mutex
	left int
}

func (c *countdown) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestFiltersMatchAScan: the filters give the same result as a scan of every record.
func TestFiltersMatchAScan(t *testing.T) {
	records := makeRecords(3000)
	x := openIn(t, local.Options{Embedder: random{16}})
	put(t, x, records...)
	from := time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC)
	queries := []kb.Query{
		{Namespaces: []kb.Namespace{kb.NamespaceStudio}}, {Types: []kb.Type{kb.TypeLink}}, {Tags: []string{"tag7"}}, {Tags: []string{"tag7", "tag8"}},
		{From: from, To: from.AddDate(0, 1, 0)}, {Namespaces: []kb.Namespace{kb.NamespacePublic}, Types: []kb.Type{kb.TypeDoc}, Tags: []string{"tag3"}, From: from},
	}
	for _, q := range queries {
		q.Text, q.Limit = "babi bebi bibi", kb.MaxLimit // common words
		var want []string
		for _, r := range records {
			if (len(q.Namespaces) == 0 || slices.Contains(q.Namespaces, r.Namespace)) && (len(q.Types) == 0 || slices.Contains(q.Types, r.Type)) &&
				!slices.ContainsFunc(q.Tags, func(tag string) bool { return !slices.Contains(r.Tags, tag) }) &&
				!r.LastUpdated.Before(q.From) && (q.To.IsZero() || !r.LastUpdated.After(q.To)) {
				want = append(want, r.ID)
			}
		}
		got := find(t, x, q)
		for _, id := range got {
			if !slices.Contains(want, id) {
				t.Errorf("%+v finds %s", q, id)
			}
		}
		if len(want) > 0 && len(got) == 0 {
			t.Errorf("%+v finds none of %d", q, len(want))
		}
	}
}

// slow closes asked when it is called with "anchor", and answers after let.
type slow struct{ asked, let chan struct{} }

func (s slow) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if texts[0] == "anchor" {
		close(s.asked)
		<-s.let
	}
	return random{16}.Embed(ctx, texts)
}

func TestCloseWaitsForASearch(t *testing.T) {
	e := slow{asked: make(chan struct{}), let: make(chan struct{})}
	x := openIn(t, local.Options{Embedder: e})
	put(t, x, record("doc:a", "Anchor and rope", ""))
	found, closed := make(chan int), make(chan error)
	go func() {
		results, err := x.Search(t.Context(), kb.Query{Text: "anchor"})
		if err != nil {
			t.Error(err)
		}
		found <- len(results.Hits)
	}()
	<-e.asked
	go func() { closed <- x.Close() }()
	for { // until Close has begun
		if _, err := x.Held(t.Context()); errors.Is(err, kb.ErrClosed) {
			break
		}
	}
	select {
	case <-closed:
		t.Error("Close did not wait")
	default:
	}
	close(e.let)
	if n := <-found; n != 1 {
		t.Errorf("%d hits of the search that was running", n)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
