package local

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"voicegw/internal/backends/kb"
)

// Options configure an Index. The zero value means an index that ranks only by words.
type Options struct {
	// Embedder computes the vectors. Nil means ranking only by words. Close does not
	// close it.
	Embedder kb.Embedder
	// Language is the language of every record, as for kb.NewRanker; if it is empty, each
	// record's text decides.
	Language string
	// Synonyms is called for every search; it may be nil, and return nil. It may be called
	// concurrently.
	Synonyms func() *kb.Synonyms
	// EmbedTimeout bounds the wait for a query's vector. Zero means 600 ms.
	EmbedTimeout time.Duration
	// Logger gets at most one line a minute while the Embedder fails. Nil means no logging.
	Logger *slog.Logger
}

// Index is a kb.Index. Searches wait neither for an Apply nor for one another: each
// uses the content at the time when it began.
type Index struct {
	// Fixed after Open.
	options Options
	ranker  *kb.Ranker
	store   *store
	query   *kb.Guard // nil without an Embedder, like load
	load    *kb.Guard

	// applying is held by the one running Apply; it guards the writing side of store and the
	// making of the next snapshot.
	applying sync.Mutex

	mu      sync.Mutex // guards the fields below
	current *snapshot
	closed  bool
	calls   sync.WaitGroup // Add is called under mu while the index is not closed
}

var _ kb.Index = (*Index)(nil)

// entry is one record in the index. It does not change after it was published.
type entry struct {
	record  kb.Record
	hash    string
	embeds  [sha256.Size]byte // of the text to embed
	vector  []float32
	updated int64 // ms
	number  int   // in the postings
	lengths lengths
}

// snapshot is everything that a search reads. It does not change, except that postings grow.
type snapshot struct {
	postings *postings
	entries  map[string]*entry
	docs     []*entry // by number; nil for a removed record
	rows     []*entry // entries with vectors, by id
	lengths  lengths  // the sums over all records
	// names are made at the first question for them; of each namespace.
	names func() map[kb.Namespace]kb.Names
}

// dimensions returns the dimensions of the vectors; 0 if there are no vectors.
func (s *snapshot) dimensions() int {
	if len(s.rows) == 0 {
		return 0
	}
	return len(s.rows[0].vector)
}

// Open makes an empty index.
func Open(o Options) (*Index, error) {
	if o.EmbedTimeout <= 0 {
		o.EmbedTimeout = 600 * time.Millisecond
	}
	ranker, err := kb.NewRanker(o.Language)
	if err != nil {
		return nil, fmt.Errorf("kb/local: %w", err)
	}
	x := &Index{options: o, ranker: ranker, store: newStore(ranker)}
	if o.Embedder != nil {
		x.query = kb.NewGuard(o.Embedder, o.Logger, "query", kb.GuardOptions{Timeout: o.EmbedTimeout, Rest: 10 * time.Second})
		x.load = kb.NewGuard(o.Embedder, o.Logger, "records", kb.GuardOptions{})
	}
	x.publish(map[string]*entry{})
	return x, nil
}

// begin registers a call, which must call x.calls.Done at its end, and returns the snapshot it
// uses.
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
	next := &snapshot{postings: x.store.postings, entries: entries, docs: make([]*entry, x.store.numbers)}
	for _, e := range entries {
		next.docs[e.number] = e
		for i, n := range e.lengths {
			next.lengths[i] += n
		}
		if e.vector != nil {
			next.rows = append(next.rows, e)
		}
	}
	next.names = sync.OnceValue(func() map[kb.Namespace]kb.Names { return namesOf(entries) })
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

// record returns the record with an id.
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
