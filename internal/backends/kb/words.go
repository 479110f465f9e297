package kb

import (
	"slices"
	"strings"
)

// Term is a word of a record.
type Term struct {
	// Surface is the whole word, folded.
	Surface string
	// Forms are its terms in an index, each once: its stem, then alternatives.
	Forms []string
	// Start and End are byte offsets in the text.
	Start, End int
}

// WordReader analyzes records' texts with a cache of words. Only one goroutine at a time may use it.
type WordReader struct {
	ranker *Ranker
	known  map[known]Term
}

type known struct {
	word     string
	language Language
	short    bool
}

// maxKnown bounds the cache of a WordReader.
const maxKnown = 50_000

// NewReader makes a WordReader.
func (r *Ranker) NewReader() *WordReader { return &WordReader{ranker: r, known: map[known]Term{}} }

// Parts is the number of a record's parts with words: the title, the tags and the text, in this order.
const Parts = 3

// Weights are the weights of the parts in the sum of BM25.
var Weights = [Parts]float64{2.5, 1.5, 1}

// Record returns the terms of a record's parts.
func (r *WordReader) Record(rec *Record) (in Text, parts [Parts][]Term) {
	text := Plain(rec.Text)
	in = r.Language(rec.Title + "\n" + text)
	return in, [Parts][]Term{
		r.Terms(rec.Title, in, true), r.Terms(strings.Join(rec.Tags, " "), in, true), r.Terms(text, in, false),
	}
}

// Text describes the language of a text.
type Text struct {
	Language Language
	// Short means that the text is short and its language unknown, so words have forms in several languages.
	Short bool
}

// Language detects the language of a record's whole text.
func (r *WordReader) Language(text string) Text {
	if r.ranker.fixed != Unknown {
		return Text{Language: r.ranker.fixed}
	}
	tokens := Tokens(text)
	language := r.ranker.detect(tokens)
	return Text{Language: language, Short: language == Unknown && len(tokens) <= shortText}
}

// Terms returns the terms of a text, without stop words unless keep is set.
func (r *WordReader) Terms(text string, in Text, keep bool) []Term {
	var terms []Term
	for _, t := range Tokens(text) {
		if !keep && r.ranker.Stop(t.Text, in.stops()) {
			continue
		}
		term := r.term(t.Text, in)
		term.Start, term.End = t.Start, t.End
		if len(t.Also) > 0 {
			term.Forms = slices.Clone(term.Forms)
			for _, also := range t.Also {
				term.Forms = addAll(term.Forms, r.term(also, in).Forms)
			}
		}
		terms = append(terms, term)
	}
	return terms
}

// Languages returns the languages of the forms of the text's words.
func (t Text) Languages() []Language {
	switch {
	case t.Language != Unknown:
		return []Language{t.Language}
	case t.Short:
		return guessed
	}
	return []Language{"en"}
}

func (t Text) stops() Language {
	if t.Language == Unknown {
		return "en"
	}
	return t.Language
}

func (r *WordReader) term(word string, in Text) Term {
	key := known{word, in.Language, in.Short}
	if t, ok := r.known[key]; ok {
		return t
	}
	t := Term{Surface: Fold(word)}
	for _, language := range in.Languages() {
		t.Forms = r.ranker.forms(t.Forms, word, language)
	}
	if len(r.known) >= maxKnown {
		clear(r.known)
	}
	r.known[key] = t
	return t
}

// forms adds the stem of a word and the stem of its respelling.
func (r *Ranker) forms(to []string, word string, language Language) []string {
	to = add(to, r.Stem(word, language))
	if other := respell(word); other != "" {
		to = add(to, r.Stem(other, language))
	}
	return to
}

func add(to []string, form string) []string {
	if form == "" || slices.Contains(to, form) {
		return to
	}
	return append(to, form)
}

func addAll(to, forms []string) []string {
	for _, form := range forms {
		to = add(to, form)
	}
	return to
}

// Asked is a word of a question.
type Asked struct {
	// Word has its accents. Surfaces are its folded spellings, that of Word first.
	Word     string
	Surfaces []string
	// Forms are its stems in every language of the question, each once.
	Forms []string
	// Weak means that it is a stop word of a possible language of the question, or says little about the subject.
	Weak bool
}

// MaxAsked bounds the words of a question.
const MaxAsked = 32

// Question analyzes a question in several languages, and always in English. It returns at most MaxAsked distinct words,
// without the stop words of the question's own language unless it has no other words.
func (r *Ranker) Question(text string, languages []Language) []Asked {
	if !slices.Contains(languages, "en") {
		languages = append(slices.Clone(languages), "en")
	}
	tokens := Tokens(text)
	own := r.detect(tokens)
	var all, stops []Asked
	seen := map[string]bool{}
	for _, t := range tokens {
		if seen[t.Text] || t.Text == "" {
			continue
		}
		seen[t.Text] = true
		w := Asked{Word: t.Text, Surfaces: add([]string{Fold(t.Text)}, respell(t.Text)), Weak: r.small(t.Text, own)}
		for _, language := range languages {
			w.Forms = r.forms(w.Forms, t.Text, language)
			w.Forms = add(w.Forms, r.Stem(w.Surfaces[0], language))
			w.Weak = w.Weak || own == Unknown && r.Stop(t.Text, language)
			for _, also := range t.Also {
				w.Forms = r.forms(w.Forms, also, language)
			}
		}
		for _, also := range t.Also {
			w.Surfaces = add(w.Surfaces, Fold(also))
		}
		if own != Unknown && r.Stop(t.Text, own) {
			stops = append(stops, w)
		} else {
			all = append(all, w)
		}
	}
	if len(all) == 0 {
		all = stops
	}
	return all[:min(len(all), MaxAsked)]
}
