package kb

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
	"unicode/utf8"
)

// Index holds records and answers questions about them. Every method may be called
// from any number of goroutines at once. What one Apply changes is visible to a
// Search or Get as a whole or not at all (an index over the network may say less,
// and then says so). Whatever is given in stays the caller's; whatever comes out is
// shared and must not be changed.
//
// After Close every method returns ErrClosed.
type Index interface {
	// Search returns the best records for the query, best first. Nothing found is
	// an empty Results and no error. An error that wraps ErrQuery is the caller's
	// fault; any other means that the index could not be asked.
	Search(ctx context.Context, q Query) (Results, error)

	// Get returns the records with the ids, in the order of the ids, each once, and
	// the ids there is no record for. Missing ids are no error.
	Get(ctx context.Context, ids []string) (found []Record, missing []string, err error)

	// Apply makes the batch's changes. It returns an error that wraps ErrRecord,
	// having changed nothing, when a record fails Record.Check; ids to delete that
	// do not exist are no error. A record is searchable when Apply returns. When the
	// Embedder fails, its records are searchable by their words, Held says that they
	// are not complete, and the failure is logged and counted: Apply does not fail.
	Apply(ctx context.Context, b Batch) error

	// Held says what the index holds, by id, so that a source sends only what has
	// changed and deletes what is gone.
	Held(ctx context.Context) (map[string]Held, error)

	// Close waits for the calls that are running and frees what the index holds.
	// It may be called more than once.
	Close() error
}

// Batch is what one Apply changes. An id that is in both is deleted, then put in.
type Batch struct {
	// Upsert are the records to put in the place of those with their ids, if any.
	// They are normalized already. Of two with one id the last counts.
	Upsert []Record
	// Delete are the ids to take out.
	Delete []string
	// WordsOnly leaves the Embedder out: the records are searchable by their words
	// at once, and with the vector of before where the text is the same. Held tells
	// which of them want to be put in again without it.
	WordsOnly bool
}

// Held is what an index says of one record.
type Held struct {
	// Hash is Record.Hash.
	Hash string
	// Complete is false when there is an Embedder and the record has no vector yet.
	Complete bool
}

// The limits of a query.
const (
	// MaxQueryRunes bounds the text of a query.
	MaxQueryRunes = 1000
	// MaxLimit bounds the hits of a query: no more are ranked by either way.
	MaxLimit = 50
	// MaxAlternatives bounds the other wordings of a query.
	MaxAlternatives = 3
	// DefaultLimit is the number of hits when a query does not say.
	DefaultLimit = 10
)

// Query is a question. The zero value of each field but Text filters nothing.
type Query struct {
	// Text is what is looked for: words, a name, a sentence. It must not be empty.
	Text string
	// Alternatives are other wordings of the same question, at most MaxAlternatives, which
	// count less than Text: synonyms, a translation, abbreviations in full.
	Alternatives []string
	// Namespaces are the only namespaces looked in; empty is all of them.
	Namespaces []Namespace
	// Type is the only type looked for; empty is any.
	Type Type
	// Tags must all be on a record. They are compared as NormalizeTags makes them.
	Tags []string
	// From and To bound LastUpdated, both inclusive.
	From, To time.Time
	// Limit is the most hits, 1 to MaxLimit. Zero means DefaultLimit.
	Limit int
}

// Check returns nil or an error that wraps ErrQuery and says all that is wrong.
func (q *Query) Check() error {
	for _, namespace := range q.Namespaces {
		if !slices.Contains(Namespaces(), namespace) {
			return fmt.Errorf("%w: namespace %q is not one of %s", ErrQuery, namespace, list(Namespaces()))
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
	case q.Type != "" && !slices.Contains(Types(), q.Type):
		return fmt.Errorf("%w: type %q is not one of %s", ErrQuery, q.Type, list(Types()))
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
	// Hits are sorted by Score, highest first, and by id where scores are equal.
	// No id is in them twice.
	Hits []Hit
	// Hybrid says that vectors took part. It is false when there is no Embedder,
	// when it failed for this query, and while no record has a vector.
	Hybrid bool
	// Degraded says that there is an Embedder and words alone decided all the same.
	Degraded bool
	// Took is the time from the call to the answer.
	Took time.Duration
}

// Hit is one record found.
type Hit struct {
	Record Record
	// Score is above 0 and at most 1. By words alone it is BM25 divided by that of
	// the best hit, times how much of the query the best hit covers: 1 where it has every
	// word, less where words are missing or only near ones were found. Hybrid, it is the sum of
	// 1/(60+place) over the rankings (words, vectors, whole names), divided by what
	// first place in every one of them gives. It compares the hits of one query;
	// Hybrid, it says nothing about how good the best one is: BM25 and Vector tell that.
	Score float64
	// BM25 is the score of the words, 0 when no word was found or the record was
	// not among the 50 best.
	BM25 float64
	// Vector is the cosine of the vectors, 0 when the record was not among the 50
	// nearest.
	Vector float64
	// Snippet is the passage of the text with most of the query's words, cut at
	// words, at most SnippetRunes characters, without Markdown's marks.
	Snippet string
}

// Embedder turns texts into vectors, one for each text in the order given, all of
// one length, not necessarily normalized. Equal texts give equal vectors as far as
// the caller cares: what is embedded once may be kept. It may be called by several
// goroutines at once and honours the context. Texts are never empty.
type Embedder interface {
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// QueryEmbedder is an Embedder that treats a question otherwise than a record: some
// models want it, and a question is not worth keeping. Indexes ask for it.
type QueryEmbedder interface {
	Embedder
	// EmbedQuery is Embed for the text of one query.
	EmbedQuery(ctx context.Context, text string) ([]float32, error)
}

// EmbedQuery asks an Embedder for the vector of a query, in the way it has for them.
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

// CheckVectors refuses, with an error that wraps ErrVectors, an answer of an Embedder
// that is not one vector for each of so many texts, all of one length and none of
// them zero or not a number.
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
