// Package local is the knowledge base's index in this process: BM25 over inverted lists in
// memory, an exact scan of the vectors, and the fusion of package kb.
//
// Words. For each part of a record (title, tags, text) and each term there is a list of the records that have it. A
// score is the plain sum of BM25 over the terms and parts, so that the scores of two queries can be compared. Lists
// only grow: a removed record keeps its places until more than half of all places are of removed records.
//
// Vectors. Every record that passes the filter is compared; nothing is approximate.
// A vector costs 4 bytes per dimension and record.
package local

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"voicegw/internal/backends/kb"
)

// Options configure an Index. The zero value means an index that ranks only by words.
type Options struct {
	Embedder kb.Embedder // makes the vectors. Nil means ranking only by words. Close does not close it.
	Language string      // the argument of kb.NewRanker
	// Synonyms is called for every search, possibly concurrently. It may be nil and may return nil.
	Synonyms func() *kb.Synonyms
	Logger   *slog.Logger // gets at most one line a minute while the Embedder fails. Nil means no logging.
}

// Index is a kb.Index. A search uses the content at its beginning, so it waits for no Apply and no other search.
type Index struct {
	// Fixed after Open.
	options Options
	ranker  *kb.Ranker
	words   *vocabulary
	query   *kb.Guard // nil without an Embedder, like load
	load    *kb.Guard

	applying sync.Mutex // serialises Apply and guards the following fields
	postings *postings
	numbers  int // given to records so far

	mu      sync.Mutex // guards the fields below
	current *snapshot
	closed  bool
	calls   sync.WaitGroup // Add is called under mu while the index is not closed
}

var _ kb.Index = (*Index)(nil)

// entry is a record in the index. It is immutable after publish.
type entry struct {
	record  kb.Record
	hash    string
	embeds  [sha256.Size]byte // of the text to embed
	vector  []float32
	updated int64 // ms
	number  int   // in the postings
	lengths lengths
}

// snapshot is the content for a search. It is immutable, except that postings grow.
type snapshot struct {
	postings *postings
	entries  map[string]*entry
	docs     []*entry // by number; nil for a removed record
	rows     []*entry // entries with vectors, by id
	lengths  lengths  // the sums over all records
}

func (s *snapshot) dimensions() int {
	if len(s.rows) == 0 {
		return 0
	}
	return len(s.rows[0].vector)
}

// Open makes an empty index.
func Open(o Options) (*Index, error) {
	ranker, err := kb.NewRanker(o.Language)
	if err != nil {
		return nil, fmt.Errorf("kb/local: %w", err)
	}
	x := &Index{options: o, ranker: ranker, words: newVocabulary(), postings: newPostings()}
	x.query, x.load = kb.NewGuards(o.Embedder, o.Logger)
	x.publish(map[string]*entry{})
	return x, nil
}

// begin registers a call and returns its snapshot. The call must end with x.calls.Done.
func (x *Index) begin() (*snapshot, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, kb.ErrClosed
	}
	x.calls.Add(1)
	return x.current, nil
}

// publish makes the entries and the store's current content visible to searches.
func (x *Index) publish(entries map[string]*entry) {
	next := &snapshot{postings: x.postings, entries: entries, docs: make([]*entry, x.numbers)}
	for _, e := range entries {
		next.docs[e.number] = e
		for i, n := range e.lengths {
			next.lengths[i] += n
		}
		if e.vector != nil {
			next.rows = append(next.rows, e)
		}
	}
	slices.SortFunc(next.rows, func(a, b *entry) int { return cmp.Compare(a.record.ID, b.record.ID) })
	x.mu.Lock()
	x.current = next
	x.mu.Unlock()
}

// Get implements kb.Index.
func (x *Index) Get(_ context.Context, ids []string) (found []kb.Record, missing []string, err error) {
	s, err := x.begin()
	if err != nil {
		return nil, nil, err
	}
	defer x.calls.Done()
	found, missing = kb.Pick(ids, s.record)
	return found, missing, nil
}

func (s *snapshot) record(id string) (kb.Record, bool) {
	e, ok := s.entries[id]
	if !ok {
		return kb.Record{}, false
	}
	return e.record, true
}

// Held implements kb.Index.
func (x *Index) Held(_ context.Context) (map[string]kb.Held, error) {
	s, err := x.begin()
	if err != nil {
		return nil, err
	}
	defer x.calls.Done()
	held := make(map[string]kb.Held, len(s.entries))
	for id, e := range s.entries {
		held[id] = kb.Held{Hash: e.hash, Complete: e.vector != nil || x.options.Embedder == nil}
	}
	return held, nil
}

// Close implements kb.Index.
func (x *Index) Close() error {
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.calls.Wait()
	return nil
}

// Names implements kb.Index.
func (x *Index) Names(_ context.Context, namespaces []kb.Namespace) (kb.Names, error) {
	s, err := x.begin()
	if err != nil {
		return kb.Names{}, err
	}
	defer x.calls.Done()
	people, categories := map[string]string{}, map[string]bool{}
	for _, e := range s.entries {
		if len(namespaces) > 0 && !slices.Contains(namespaces, e.record.Namespace) {
			continue
		}
		if e.record.Type == kb.TypePerson {
			people[e.record.ID] = e.record.Title
		}
		for _, id := range e.record.Authors {
			people[id] = cmp.Or(people[id], "")
		}
		for _, name := range e.record.Categories {
			categories[name] = true
		}
	}
	return kb.NewNames(people, slices.Collect(maps.Keys(categories))), nil
}
