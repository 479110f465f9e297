package local

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	index "github.com/blevesearch/bleve_index_api"

	"voicegw/backends/kb"
	"voicegw/backends/kb/internal/vectors"
)

// Options configure an Index. The zero value means an index in memory that ranks only by
// words.
type Options struct {
	// Dir is this index's own folder, in which it keeps its content for the next Open. Empty
	// means that the content is kept in memory.
	Dir string
	// Embedder computes the vectors. Nil means ranking only by words. Close does not
	// close it.
	Embedder kb.Embedder
	// Language is the language of every record, one of kb.RecordLanguages; if it is empty, each
	// record's text decides. After a change of Language, Dir must be emptied.
	Language string
	// Synonyms is called for every search; it may be nil, and return nil. It may be called
	// concurrently.
	Synonyms func() *kb.Synonyms
	// EmbedTimeout bounds the wait for a query's vector. Zero means 600 ms.
	EmbedTimeout time.Duration
	// MinCosine is the cosine below which a record does not count as near; a good value depends
	// on the model. Zero accepts every positive cosine.
	MinCosine float64
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
	query   *vectors.Guard // nil without an Embedder, like load
	load    *vectors.Guard

	// applying is held by the one running Apply; it guards the writing side of store and the
	// making of the next snapshot.
	applying sync.Mutex

	searches atomic.Uint64

	mu      sync.Mutex // guards the fields below
	current *snapshot
	closed  bool
	calls   sync.WaitGroup // Add is called under mu while the index is not closed
}

var _ kb.Index = (*Index)(nil)

// entry is one record in the index. It never changes.
type entry struct {
	record  kb.Record
	hash    string
	embeds  string // a hash of the text to embed
	vector  []float32
	updated int64 // ms
	lengths lengths
}

// snapshot is everything that a search reads. Only its reference count changes.
type snapshot struct {
	reader  index.IndexReader
	entries map[string]*entry
	rows    []*entry // entries with vectors, by id
	lengths lengths  // the sums over all records
	users   int      // reference count, guarded by Index.mu; the index itself holds one
}

// dimensions returns the dimensions of the vectors, 0 if there are none.
func (s *snapshot) dimensions() int {
	if len(s.rows) == 0 {
		return 0
	}
	return len(s.rows[0].vector)
}

// Open makes an index, or opens the one in Options.Dir.
func Open(ctx context.Context, o Options) (*Index, error) {
	if o.EmbedTimeout <= 0 {
		o.EmbedTimeout = 600 * time.Millisecond
	}
	ranker, err := kb.NewRanker(o.Language)
	if err != nil {
		return nil, fmt.Errorf("kb/local: %w", err)
	}
	st, err := openStore(o.Dir, ranker)
	if err != nil {
		return nil, fmt.Errorf("kb/local: %w", err)
	}
	x := &Index{options: o, ranker: ranker, store: st}
	if o.Embedder != nil {
		x.query = vectors.New(o.Embedder, o.Logger, "query", vectors.Options{Timeout: o.EmbedTimeout, Rest: 10 * time.Second})
		x.load = vectors.New(o.Embedder, o.Logger, "records", vectors.Options{})
	}
	entries, err := st.read(ctx)
	if err == nil {
		st.count(entries)
	}
	if err == nil {
		err = x.publish(entries)
	}
	if err != nil {
		return nil, fmt.Errorf("kb/local: %w", joinClose(err, st))
	}
	return x, nil
}

// begin registers a call, and returns the snapshot it uses.
func (x *Index) begin() (*snapshot, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, kb.ErrClosed
	}
	x.calls.Add(1)
	x.current.users++
	return x.current, nil
}

func (x *Index) end(s *snapshot) {
	x.release(s)
	x.calls.Done()
}

func (x *Index) release(s *snapshot) {
	x.mu.Lock()
	s.users--
	last := s.users == 0
	x.mu.Unlock()
	if last {
		// Close only decrements a reference count; its error would have no receiver.
		_ = s.reader.Close()
	}
}

// publish makes the entries and the store's current content visible to searches.
func (x *Index) publish(entries map[string]*entry) error {
	reader, err := x.store.reader()
	if err != nil {
		return err
	}
	next := &snapshot{reader: reader, entries: entries, users: 1}
	for _, e := range entries {
		next.lengths.add(e.lengths)
		if e.vector != nil {
			next.rows = append(next.rows, e)
		}
	}
	slices.SortFunc(next.rows, func(a, b *entry) int { return compare(a.record.ID, b.record.ID) })
	x.mu.Lock()
	old := x.current
	x.current = next
	x.mu.Unlock()
	if old != nil {
		x.release(old)
	}
	return nil
}

// Get implements kb.Index.
func (x *Index) Get(_ context.Context, ids []string) (found []kb.Record, missing []string, err error) {
	s, err := x.begin()
	if err != nil {
		return nil, nil, err
	}
	defer x.end(s)
	seen := map[string]bool{}
	for _, id := range ids {
		if seen[id] {
			continue
		}
		seen[id] = true
		if e, ok := s.entries[id]; ok {
			found = append(found, e.record)
		} else {
			missing = append(missing, id)
		}
	}
	return found, missing, nil
}

// Held implements kb.Index.
func (x *Index) Held(_ context.Context) (map[string]kb.Held, error) {
	s, err := x.begin()
	if err != nil {
		return nil, err
	}
	defer x.end(s)
	held := make(map[string]kb.Held, len(s.entries))
	for id, e := range s.entries {
		held[id] = kb.Held{Hash: e.hash, Complete: e.vector != nil || x.options.Embedder == nil}
	}
	return held, nil
}

// Stats are numbers for metrics and for people. Counters start at Open.
type Stats struct {
	// Records is how many records are held now, Vectors how many of them have one.
	Records, Vectors int
	// Searches counts answered searches, Degraded those without vectors because the Embedder
	// failed or rested after a failure.
	Searches, Degraded uint64
	// LoadFailures counts the Applies whose records the Embedder did not embed.
	LoadFailures uint64
}

// Stats returns the current numbers. It may be called at any time, also after Close.
func (x *Index) Stats() Stats {
	x.mu.Lock()
	current := x.current
	x.mu.Unlock()
	stats := Stats{Records: len(current.entries), Vectors: len(current.rows), Searches: x.searches.Load()}
	if x.query != nil {
		stats.Degraded, stats.LoadFailures = x.query.Failures(), x.load.Failures()
	}
	return stats
}

// Close implements kb.Index.
func (x *Index) Close() error {
	x.mu.Lock()
	first := !x.closed
	x.closed = true
	x.mu.Unlock()
	x.calls.Wait()
	if !first {
		return nil
	}
	x.release(x.current)
	return x.store.close()
}
