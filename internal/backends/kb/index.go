package kb

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
	"unicode/utf8"
)

// Index holds records and answers questions about them. Every method may be called concurrently.
// The changes of one Apply become visible to a Search or Get together or not at all (an index
// over the network may promise less, and then says so). Arguments stay the caller's; results
// are shared and must not be changed.
//
// After Close every method returns ErrClosed.
type Index interface {
	// Search returns the best records for the query, best first. An empty Results is not an
	// error. An error that wraps ErrQuery is the caller's fault; any other means that the index
	// could not be asked.
	Search(ctx context.Context, q Query) (Results, error)

	// Get returns the records with the ids, in the order of the ids, each once, and the ids
	// without a record, which are not an error.
	Get(ctx context.Context, ids []string) (found []Record, missing []string, err error)

	// Names returns what the records of some namespaces (of all if the list is empty) can be
	// filtered by, within MaxNames.
	Names(ctx context.Context, namespaces []Namespace) (Names, error)

	// Apply makes the batch's changes. If a record fails Record.Check, it changes nothing and
	// returns an error that wraps ErrRecord; unknown ids to delete are not an error. A record is
	// searchable when Apply returns. If the Embedder fails, its records are searchable by their
	// words, Held says that they are not complete, and the failure is logged and counted: Apply
	// does not fail.
	Apply(ctx context.Context, b Batch) error

	// Held describes what the index holds, by id, so that a source sends only changes and
	// deletes removed records.
	Held(ctx context.Context) (map[string]Held, error)

	// Close waits for running calls and frees what the index holds. It may be called more
	// than once.
	Close() error
}

// MaxNames bounds the people and the categories of Names. Where there are more, the rest is
// missing: filters cannot name it.
const MaxNames = 10_000

// Names are what filters can name.
type Names struct {
	// People are all records of persons, and the authors without such a record, by id.
	People []Person
	// Categories are those of all records, sorted.
	Categories []string
}

// Person is somebody who may be an author.
type Person struct {
	ID string
	// Name is the title of the person's record; empty if there is no record.
	Name string
}

// Pick looks ids up as Index.Get does: each once, in their order.
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

// Batch is the change of one Apply. An id that is in both lists is deleted, then put in.
type Batch struct {
	// Upsert are the records to put in, replacing those with the same ids. They must be
	// normalized. Of two with one id the last counts.
	Upsert []Record
	// Delete are the ids of records to remove.
	Delete []string
	// WordsOnly skips the Embedder: the records are searchable by their words at once, and
	// with their previous vector if the text is the same. Held tells which of them must be
	// put in again without WordsOnly.
	WordsOnly bool
}

// Held describes one record of an index.
type Held struct {
	// Hash is Record.Hash.
	Hash string
	// Complete is false if there is an Embedder and the record has no vector yet.
	Complete bool
}

// The limits of a query.
const (
	// MaxQueryRunes bounds the text of a query.
	MaxQueryRunes = 1000
	// MaxLimit bounds the hits of a query, and how many each ranking considers.
	MaxLimit = 50
	// MaxFilterNames bounds the authors of a query, and its categories.
	MaxFilterNames = 100
	// MaxAlternatives bounds the other wordings of a query.
	MaxAlternatives = 3
	// DefaultLimit is the number of hits if a query does not say.
	DefaultLimit = 10
)

// Query is a question. The zero value of each field except Text filters nothing.
type Query struct {
	// Text is what to look for: words, a name, a sentence. It must not be empty.
	Text string
	// Alternatives are other wordings of the same question, at most MaxAlternatives, which
	// count less than Text: synonyms, a translation, abbreviations in full.
	Alternatives []string
	// Namespaces are the only ones searched; empty means all of them.
	Namespaces []Namespace
	// Types are the only types searched; empty means any.
	Types []Type
	// Tags must all be on a record. They are compared in the form of NormalizeTags.
	Tags []string
	// Authors are ids of persons, of whom a record must have at least one as author.
	Authors []string
	// Categories are names as records have them, of which a record must have at least one.
	Categories []string
	// From and To bound LastUpdated, both inclusive.
	From, To time.Time
	// Limit is the most hits, 1 to MaxLimit. Zero means DefaultLimit.
	Limit int
}

// Check returns nil or an error that wraps ErrQuery and names every fault.
func (q *Query) Check() error {
	for _, namespace := range q.Namespaces {
		if !slices.Contains(Namespaces(), namespace) {
			return fmt.Errorf("%w: namespace %q is not one of %s", ErrQuery, namespace, list(Namespaces()))
		}
	}
	for _, kind := range q.Types {
		if !slices.Contains(Types(), kind) {
			return fmt.Errorf("%w: type %q is not one of %s", ErrQuery, kind, list(Types()))
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
	// Hits are sorted by Score, highest first, and by id for equal scores. No id occurs twice.
	Hits []Hit
	// Hybrid says that vectors took part. It is false if there is no Embedder, if it failed
	// for this query, and while no record has a vector.
	Hybrid bool
	// Degraded says that words alone decided although there is an Embedder.
	Degraded bool
	// Took is the time from the call to the answer.
	Took time.Duration
}

// Hit is one found record.
type Hit struct {
	Record Record
	// Score is above 0 and at most 1. By words alone it is BM25 divided by the best hit's
	// BM25, times how much of the query the best hit covers: 1 if it has every word, less if
	// words are missing or only near ones were found. If Hybrid, it is the sum of
	// 1/(60+place) over the rankings (words, vectors, whole names), divided by the sum for
	// first place in all of them. It compares the hits of one query; if Hybrid, it says
	// nothing about how good the best one is: BM25 and Vector do.
	Score float64
	// BM25 is the score of the words; 0 if no word was found or the record was not among the
	// 50 best.
	BM25 float64
	// Vector is the cosine of the vectors; 0 if the record was not among the 50 nearest.
	Vector float64
	// Snippet is the passage of the text with most of the query's words, cut between words, at
	// most SnippetRunes characters, without Markdown's marks.
	Snippet string
}

// Embedder turns texts into vectors, one for each text in the given order, all of one length,
// not necessarily normalized. Equal texts may be given equal vectors, so a vector may be kept.
// It may be called concurrently and honours the context. Texts are never empty.
type Embedder interface {
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// QueryEmbedder is an Embedder that treats questions differently from records: some models
// require it, and a question's vector is not worth keeping. Indexes use it if it is there.
type QueryEmbedder interface {
	Embedder
	// EmbedQuery is Embed for the text of one query.
	EmbedQuery(ctx context.Context, text string) ([]float32, error)
}

// EmbedQuery asks an Embedder for the vector of a query, with its EmbedQuery if it has one.
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

// CheckVectors refuses, with an error that wraps ErrVectors, an Embedder's answer that is not one
// vector for each of n texts, all of one length and none of them zero or not a number.
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
