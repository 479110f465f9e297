// Package kb is the knowledge base of the retrieval tools: records, the interface [Index], permissions ([Library]), the
// names in a query ([ResolveAuthors]), and records in the answers of tools ([Evidence]).
//
// A [Source] keeps an Index equal to a folder of files. Package local is an index in this process, [Qdrant] one over the
// network. Both rank with [Ranker]: by words with BM25 and, with an [Embedder], by
// vectors, joined by reciprocal rank. Words are lower-case terms without accents, stemmed by Snowball in the language
// of their text. [EmbeddingClient] is an Embedder over HTTP.
package kb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
	"unicode/utf8"
)

// Index stores and searches records. It may be used concurrently. A Search or Get sees all changes of an Apply or none,
// unless the implementation documents less. Results are shared, so the caller must not change them.
//
// After Close every method returns ErrClosed.
type Index interface {
	// Search returns the best records for the query, best first. No hits are not an error. An error that wraps ErrQuery
	// is the caller's fault; another one means that the index failed.
	Search(ctx context.Context, q Query) (Results, error)

	// Get returns the records with the ids, each once, in the order of the ids, and the ids without a record.
	Get(ctx context.Context, ids []string) (found []Record, missing []string, err error)

	// Names returns the names for filters in some namespaces, or in all if the list is empty, within MaxNames.
	Names(ctx context.Context, namespaces []Namespace) (Names, error)

	// Apply changes records. If a record fails Record.Check, it changes nothing and its error wraps ErrRecord. It
	// ignores unknown ids to delete. Its records are searchable when it returns. If the Embedder fails, Apply succeeds,
	// but the records are searchable only by their words and Held reports them as incomplete.
	Apply(ctx context.Context, b Batch) error

	// Held describes the index's records by id, so that a source sends only changes and deletes removed records.
	Held(ctx context.Context) (map[string]Held, error)

	// Close waits for running calls and frees the index. It may be called more than once.
	Close() error
}

// MaxNames bounds the people and the categories of Names. Filters cannot name the others.
const MaxNames = 10_000

// Names are the names for filters.
type Names struct {
	People     []Person // sorted by id. They have a record or are authors.
	Categories []string // sorted
}

// NewNames makes Names of persons' names by id and of categories, which may repeat.
func NewNames(people map[string]string, categories []string) Names {
	var n Names
	for _, id := range slices.Sorted(maps.Keys(people)) {
		n.People = append(n.People, Person{ID: id, Name: people[id]})
	}
	slices.Sort(categories)
	categories = slices.Compact(categories)
	return Names{n.People[:min(len(n.People), MaxNames)], categories[:min(len(categories), MaxNames)]}
}

// Person is a possible author.
type Person struct {
	ID   string
	Name string // the title of the person's record; empty without a record
}

// Pick looks up ids as Index.Get does: each once, in their order.
func Pick(ids []string, look func(id string) (Record, bool)) (found []Record, missing []string) {
	seen := map[string]bool{}
	for _, id := range ids {
		if seen[id] {
			continue
		}
		seen[id] = true
		if record, ok := look(id); ok {
			found = append(found, record)
		} else {
			missing = append(missing, id)
		}
	}
	return found, missing
}

// Batch is the change of an Apply. It deletes records before it inserts others.
type Batch struct {
	Upsert []Record // normalized records, which replace those with the same ids. The last one with an id counts.
	Delete []string // the ids of records to remove
	// WordsOnly skips the Embedder. A record keeps its previous vector if its text is the same. Held reports the
	// records without a vector, which need another Apply.
	WordsOnly bool
}

// Check returns the error of the first invalid record (Record.Check), or nil.
func (b *Batch) Check() error {
	for i := range b.Upsert {
		if err := b.Upsert[i].Check(); err != nil {
			return err
		}
	}
	return nil
}

// Held describes a record of an index.
type Held struct {
	Hash     string // Record.Hash
	Complete bool   // false for a record without a vector in an index with an Embedder
}

// The limits of a query.
const (
	MaxQueryRunes   = 1000 // bounds the text of a query
	MaxLimit        = 50   // bounds the hits of a query
	MaxFilterNames  = 100  // bounds the authors and the categories of a query
	MaxAlternatives = 3    // bounds the other wordings of a query
	DefaultLimit    = 10   // the default of Query.Limit
)

// Query is a question with filters. The zero value of a filter filters nothing.
type Query struct {
	Text string // the question: words, a name, a sentence. It is required.
	// Alternatives are other wordings of the question, such as synonyms or a translation, which count less than Text.
	Alternatives []string
	Namespaces   []Namespace // the searched ones; empty means all
	Types        []Type      // the searched ones; empty means all
	Tags         []string    // tags that a hit has, in the form of NormalizeTags
	Authors      []string    // ids of persons. A hit has at least one of them as author.
	Categories   []string    // exact names. A hit has at least one of them.
	// From and To bound LastUpdated, both inclusive.
	From, To time.Time
	Limit    int // the maximum number of hits, 1 to MaxLimit. Zero means DefaultLimit.
}

// Range returns From and To in milliseconds since 1970, both inclusive, for records, which have whole ones.
func (q *Query) Range() (from, to int64) {
	from, to = math.MinInt64, math.MaxInt64
	if !q.From.IsZero() {
		from = q.From.UnixMilli()
		if q.From.Nanosecond()%1e6 != 0 {
			from++ // From is within one
		}
	}
	if !q.To.IsZero() {
		to = q.To.UnixMilli()
	}
	return from, to
}

// Check returns the first fault of a query as an error that wraps ErrQuery, or nil.
func (q *Query) Check() error {
	for _, namespace := range q.Namespaces {
		if !slices.Contains(Namespaces(), namespace) {
			return fmt.Errorf("%w: namespace %q is not one of %s", ErrQuery, namespace, joined(Namespaces()))
		}
	}
	for _, kind := range q.Types {
		if !slices.Contains(Types(), kind) {
			return fmt.Errorf("%w: type %q is not one of %s", ErrQuery, kind, joined(Types()))
		}
	}
	for _, text := range append([]string{q.Text}, q.Alternatives...) {
		switch {
		case text == "":
			return fmt.Errorf("%w: the text is empty", ErrQuery)
		case !utf8.ValidString(text):
			return fmt.Errorf("%w: the text is not UTF-8", ErrQuery)
		case utf8.RuneCountInString(text) > MaxQueryRunes:
			return fmt.Errorf("%w: the text has more than %d characters", ErrQuery, MaxQueryRunes)
		}
	}
	switch {
	case len(q.Alternatives) > MaxAlternatives:
		return fmt.Errorf("%w: more than %d alternatives", ErrQuery, MaxAlternatives)
	case len(q.Authors) > MaxFilterNames || len(q.Categories) > MaxFilterNames:
		return fmt.Errorf("%w: more than %d authors or categories", ErrQuery, MaxFilterNames)
	case len(q.Tags) > MaxTags:
		return fmt.Errorf("%w: more than %d tags", ErrQuery, MaxTags)
	case !q.From.IsZero() && !q.To.IsZero() && q.To.Before(q.From):
		return fmt.Errorf("%w: the range of dates ends before it begins", ErrQuery)
	case q.Limit < 0 || q.Limit > MaxLimit:
		return fmt.Errorf("%w: limit %d is not 1 to %d", ErrQuery, q.Limit, MaxLimit)
	}
	return nil
}

// Results is the answer to a Query.
type Results struct {
	Hits []Hit // sorted by Score, highest first, then by id. No id occurs twice.
	// Hybrid means that vectors took part. It is false without an Embedder, if the Embedder failed, and while no record
	// has a vector.
	Hybrid   bool
	Degraded bool          // there is an Embedder but vectors took no part
	Took     time.Duration // the duration of the search
}

// Hit is one found record.
type Hit struct {
	Record Record
	// Score is above 0 and at most 1, and compares the hits of one query. By words alone it is BM25 divided by the best
	// hit's BM25, times the best hit's cover of the query: 1 if it has every word, less if words are missing or only
	// similar. If Hybrid, it is the sum of 1/(60+place) over the rankings (words, vectors, whole names), divided by the
	// sum for first place in all of them; then only BM25 and Vector show the quality of the best hit.
	Score  float64
	BM25   float64 // the score of the words; 0 if the record was not among the Depth best
	Vector float64 // the cosine of the vectors; 0 if the record was not among the Depth nearest
	// Snippet is the passage of the text with the most words of the query: whole words, at most SnippetRunes
	// characters, without Markdown.
	Snippet string
}

// Embedder turns texts, which are not empty, into vectors: one for each text in their order, all of one length, not
// necessarily normalized. Vectors of equal texts are interchangeable, so they can be cached. It may be used
// concurrently.
type Embedder interface {
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// QueryEmbedder is an Embedder that distinguishes queries from records, as EmbeddingCache does.
type QueryEmbedder interface {
	Embedder
	// EmbedQuery is Embed for one query.
	EmbedQuery(ctx context.Context, text string) ([]float32, error)
}

// EmbedQuery returns an Embedder's vector of a query, by its EmbedQuery if it has one.
func EmbedQuery(ctx context.Context, e Embedder, text string) ([]float32, error) {
	if q, ok := e.(QueryEmbedder); ok {
		return q.EmbedQuery(ctx, text)
	}
	vectors, err := e.Embed(ctx, []string{text})
	if err != nil {
		return nil, err
	}
	if err := CheckVectors(vectors, 1); err != nil {
		return nil, err
	}
	return vectors[0], nil
}

// CheckVectors returns an error that wraps ErrVectors unless vectors has one vector for each text, all of one length,
// and none is zero or not a number.
func CheckVectors(vectors [][]float32, texts int) error {
	if len(vectors) != texts {
		return fmt.Errorf("%w: %d vectors for %d texts", ErrVectors, len(vectors), texts)
	}
	for _, v := range vectors {
		if len(v) == 0 || len(v) != len(vectors[0]) {
			return fmt.Errorf("%w: vectors of %d and %d numbers", ErrVectors, len(vectors[0]), len(v))
		}
		sum := 0.0
		for _, f := range v {
			sum += float64(f) * float64(f)
		}
		if !(sum > 0) || math.IsInf(sum, 0) {
			return fmt.Errorf("%w: a vector of length %v", ErrVectors, math.Sqrt(sum))
		}
	}
	return nil
}

var (
	// ErrClosed is returned by every method of an index or source after Close.
	ErrClosed = errors.New("kb: closed")
	// ErrQuery is wrapped by errors about an invalid Query.
	ErrQuery = errors.New("kb: bad query")
	// ErrRecord is wrapped by errors about a record that is incomplete or exceeds a limit.
	ErrRecord = errors.New("kb: bad record")
	// ErrVectors is wrapped by errors about the answer of an Embedder.
	ErrVectors = errors.New("kb: the embedder's answer does not match the texts")
)

// Problem is a fault in a source, such as an unreadable file, an incomplete record or a duplicate id. It is an error.
type Problem struct {
	File    string // the path below the source's folder, with slashes
	Line    int    // counts from 1; 0 if the problem concerns the whole file
	Message string // describes the fault and its fix
}

// Error returns "file:line: message".
func (p Problem) Error() string {
	if p.Line == 0 {
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message)
}
