package kbtest

import (
	"context"
	"errors"
	"hash/fnv"
	"math"
	"strings"
	"sync"
	"unicode"
)

// Embedder is a kb.Embedder for tests: the same vector for the same text on every machine,
// within microseconds. It hashes words, and their trigrams, into dimensions, and knows a few
// synonyms. It understands nothing: a real model finds far more texts in other words, and makes
// other mistakes, so a figure measured with it says nothing about a model.
type Embedder struct {
	// Dimensions of the vectors. Zero means 256.
	Dimensions int

	mu    sync.Mutex // guards the following fields
	fail  error
	texts int
	calls int
}

// ErrEmbedder is the default error of a failing Embedder.
var ErrEmbedder = errors.New("kbtest: the embedder fails as it was told")

// Fail makes every later call fail with err, or succeed again with nil.
func (e *Embedder) Fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fail = err
}

// Embedded returns how many texts were embedded in how many calls.
func (e *Embedder) Embedded() (texts, calls int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.texts, e.calls
}

// Embed implements kb.Embedder.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.mu.Lock()
	e.calls++
	if err := e.fail; err != nil {
		e.mu.Unlock()
		return nil, err
	}
	e.texts += len(texts)
	e.mu.Unlock()
	dimensions := e.Dimensions
	if dimensions <= 0 {
		dimensions = 256
	}
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = vector(text, dimensions)
	}
	return vectors, nil
}

// synonyms are words that have the same meaning as another.
var synonyms = map[string]string{
	"logo": "wordmark", "logos": "wordmark", "bill": "invoice", "bills": "invoice", "customer": "client",
	"vacation": "holiday", "leave": "holiday", "holidays": "holiday", "ill": "sick", "disease": "sick",
	"price": "cost", "prices": "cost", "costs": "cost", "rate": "cost", "discount": "reduced", "cheaper": "reduced",
	"vacancies": "jobs", "vacancy": "jobs", "employee": "colleague", "prize": "bronze", "award": "bronze", "won": "bronze",
	"appointment": "book", "schedule": "book", "call": "conversation", "borrow": "lent", "closed": "shut",
	"christmas": "december", "weekend": "saturday", "weekly": "monday", "meeting": "round", "meetings": "round",
	"home": "home", "office": "home", "remote": "home", "photographer": "photographs", "website": "site", "web": "site",
	"charities": "charity", "nonprofit": "charity", "non-profit": "charity", "phone": "telephone", "reimbursed": "expenses",
	"money": "expenses", "ticket": "train", "printing": "print", "house": "press", "animation": "animations", "begin": "start",
}

var ignored = map[string]bool{}

func init() {
	for _, word := range strings.Fields("a about an and are as at be been by can do does for from has have how i in is it me my no not of on or our out so that the their there they this to us was we what when where which who will with you your") {
		ignored[word] = true
	}
}

func vector(text string, dimensions int) []float32 {
	v := make([]float32, dimensions)
	add := func(part string, weight float32) {
		h := fnv.New64a()
		h.Write([]byte(part)) // it never fails
		sum := h.Sum64()
		if sum>>63 == 0 {
			weight = -weight
		}
		v[sum%uint64(dimensions)] += weight
	}
	counts := map[string]int{}
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' }) {
		if ignored[word] {
			continue
		}
		if same := synonyms[word]; same != "" {
			word = same
		}
		counts[strings.TrimSuffix(word, "s")]++
	}
	for word, n := range counts {
		weight := float32(1 + math.Log(float64(n)))
		add("="+word, 2*weight)
		padded := []rune("^" + word + "$")
		for i := 0; i+3 <= len(padded); i++ {
			add(string(padded[i:i+3]), 0.4*weight)
		}
	}
	v[0] += 1e-3 // a text without words needs a direction too
	return v
}
