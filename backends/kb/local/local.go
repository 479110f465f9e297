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

// Options are what an Index may be told. The zero value is an index in memory that
// ranks by words alone.
type Options struct {
	// Dir is a folder of this index's own in which it keeps what it holds, to be
	// there at the next Open. Empty keeps it in memory.
	Dir string
	// Embedder makes the vectors. Nil means that words alone rank. Close does not
	// close it.
	Embedder kb.Embedder
	// Language is that of every record, one of kb.RecordLanguages; empty lets the text of
	// each tell. Whoever changes it empties Dir.
	Language string
	// Synonyms are looked up for every search; it may be nil, and return nil. It may be
	// called by several goroutines at once.
	Synonyms func() *kb.Synonyms
	// EmbedTimeout bounds the wait for a query's vector. Zero means 600 ms.
	EmbedTimeout time.Duration
	// MinCosine is the cosine below which a record does not count as near; what
	// is a good value depends on the model. Zero takes every positive one.
	MinCosine float64
	// Logger gets at most one line a minute while the Embedder fails. Nil is silent.
	Logger *slog.Logger
}

// Index is a kb.Index. Searches neither wait for an Apply nor for one another: each
// works on what was there when it began.
type Index struct {
	// Fixed after Open.
	options Options
	ranker  *kb.Ranker
	store   *store
	query   *vectors.Guard // nil without an Embedder, as load
	load    *vectors.Guard

	// applying is held by the one Apply that is running; it guards store's writing
	// side and the making of the next snapshot.
	applying sync.Mutex

	searches atomic.Uint64

	mu      sync.Mutex // guards the following fields
	current *snapshot
	closed  bool
	calls   sync.WaitGroup // Add under mu while not closed
}

var _ kb.Index = (*Index)(nil)

// entry is one record as the index holds it. It never changes.
type entry struct {
	record  kb.Record
	hash    string
	embeds  string // what was, or would be, embedded: a hash of the text
	vector  []float32
	updated int64 // ms
	lengths lengths
}

// snapshot is all that a search looks at. It does not change but for its count.
type snapshot struct {
	reader  index.IndexReader
	entries map[string]*entry
	rows    []*entry // those with vectors, by id
	lengths lengths  // summed
	users   int      // guarded by Index.mu; the index itself is one of them
}

// dimensions are those of the vectors, 0 when there are none.
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

// begin counts a call in, and takes the snapshot it works on.
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
		// It only counts references down; there is nobody to tell of an error.
		_ = s.reader.Close()
	}
}

// publish makes the entries, and what the store holds now, what searches see.
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

// Stats are numbers for metrics and for people. Those that count begin at Open.
type Stats struct {
	// Records held now, and those of them with a vector.
	Records, Vectors int
	// Searches answered, and those of them without vectors because the Embedder
	// failed or was left alone for having failed.
	Searches, Degraded uint64
	// LoadFailures are the Applies whose records the Embedder did not embed.
	LoadFailures uint64
}

// Stats may be called at any time, also after Close.
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
