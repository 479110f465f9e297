package kb

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/spanish"
)

// Term is a word of a record.
type Term struct {
	Surface string   // the whole word, folded
	Forms   []string // its terms in an index, each once: its stem, then alternatives
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
}

const maxKnown = 50_000 // bounds the cache of a WordReader

// NewReader makes a WordReader.
func (r *Ranker) NewReader() *WordReader { return &WordReader{ranker: r, known: map[known]Term{}} }

// Parts is the number of a record's parts with words: the title, the tags and the text, in this order.
const Parts = 3

// Weights are the weights of the parts in the sum of BM25.
var Weights = [Parts]float64{2.5, 1.5, 1}

// Record returns the terms of a record's parts.
func (r *WordReader) Record(rec *Record) (in Language, parts [Parts][]Term) {
	text := Plain(rec.Text)
	in = r.Language(rec.Title + "\n" + text)
	return in, [Parts][]Term{
		r.Terms(rec.Title, in, true), r.Terms(strings.Join(rec.Tags, " "), in, true), r.Terms(text, in, false),
	}
}

// Language detects the language of a record's whole text; without clear signs it is English.
func (r *WordReader) Language(text string) Language {
	return cmp.Or(r.ranker.fixed, r.ranker.detect(Tokens(text)), "en")
}

// Terms returns the terms of a text, without stop words unless keep is set.
func (r *WordReader) Terms(text string, in Language, keep bool) []Term {
	var terms []Term
	for _, t := range Tokens(text) {
		if !keep && r.ranker.Stop(t.Text, in) {
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

func (r *WordReader) term(word string, in Language) Term {
	key := known{word, in}
	if t, ok := r.known[key]; ok {
		return t
	}
	t := Term{Surface: Fold(word), Forms: r.ranker.forms(nil, word, in)}
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
	Word     string // has its accents. Surfaces are its folded spellings, that of Word first.
	Surfaces []string
	Forms    []string // its stems in every language of the question, each once
	Weak     bool     // it is a stop word of a possible language of the question, or says little about the subject
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

// Language is the ISO 639-1 code of a supported language, or Unknown.
type Language string

// Unknown is the language of a text without clear signs.
const Unknown Language = ""

// Languages are all supported languages.
func Languages() []Language { return []Language{"en", "de", "es", "fr", "it", "pt", "nl"} }

type dialect struct {
	stem  func(*snowballstem.Env) bool
	stops map[string]float64 // the weight of each in the detection: a stop word of several languages counts less
	marks string
	talk  map[string]bool
}

// wordLists are lists of words in lines that begin with their language: Snowball's stop words (https://snowballstem.org,
// BSD license), "asking" are stop words in questions that Snowball lacks, and "talk" are words that speakers use to ask for
// something but that do not name it: greetings, excuses, thinking aloud. Those count less in a question. They are not stop
// words, since a record may be about them.
//
//go:embed stops.txt
var wordLists string

func load() map[Language]*dialect {
	all := map[Language]*dialect{
		"en": {stem: english.Stem},
		"de": {stem: german.Stem, marks: "äöüß"},
		"es": {stem: spanish.Stem, marks: "ñ¿¡"},
		"fr": {stem: french.Stem, marks: "çèêœ"},
		"it": {stem: italian.Stem},
		"pt": {stem: portuguese.Stem, marks: "ãõ"},
		"nl": {stem: dutch.Stem},
	}
	for _, d := range all {
		d.talk, d.stops = map[string]bool{}, map[string]float64{}
	}
	for line := range strings.Lines(wordLists) {
		key, list, _ := strings.Cut(line, ":")
		language, kind, _ := strings.Cut(key, " ")
		d := all[Language(language)]
		for _, word := range strings.Fields(list) {
			switch kind {
			case "talk":
				for _, t := range Tokens(word) {
					d.talk[t.Text], d.talk[Fold(t.Text)], d.talk[respell(t.Text)] = true, true, true
				}
			case "asking":
				d.stops[word], d.stops[Fold(word)] = 1, 1
			default:
				d.stops[word] = 1
			}
		}
	}
	languages := map[string]float64{} // of each stop word
	for _, d := range all {
		for word := range d.stops {
			languages[word]++
		}
	}
	for _, d := range all {
		for word := range d.stops {
			d.stops[word] = 1 / languages[word]
		}
	}
	return all
}

const (
	detectWords = 300
	enough      = 1.2 // exceeds the score of one stop word, because "war" may be German or English
)

// detect returns the language of a text by its stop words and letters, or Unknown if no score is clearly
// highest.
func (r *Ranker) detect(tokens []Token) Language {
	languages := Languages()
	scores := make([]float64, len(languages))
	for _, t := range tokens[:min(len(tokens), detectWords)] {
		for i, language := range languages {
			d := r.dialects[language]
			if weight := d.stops[t.Text]; weight > 0 {
				scores[i] += weight
			} else if d.marks != "" && !ascii(t.Text) && strings.ContainsAny(t.Text, d.marks) {
				scores[i] += 0.5
			}
		}
	}
	order := slices.Sorted(slices.Values(scores))
	best, second := order[len(order)-1], order[len(order)-2]
	if best < enough || best < 1.25*second {
		return Unknown
	}
	return languages[slices.Index(scores, best)]
}

// Stop reports whether a word is a stop word of a language.
func (r *Ranker) Stop(word string, language Language) bool {
	d := r.dialects[language]
	return d != nil && d.stops[word] > 0
}

// Stem returns the folded stem of a word. Without a known language, it returns the folded word.
func (r *Ranker) Stem(word string, language Language) string {
	d := r.dialects[language]
	if d == nil || hasDigit(word) {
		return Fold(word)
	}
	if language == "es" {
		switch {
		case strings.HasSuffix(word, "cion"): // as written without accents
			word = word[:len(word)-len("on")] + "ón"
		case len(word) > 4 && strings.HasSuffix(word, "ces"): // aprendices, aprendiz
			word = word[:len(word)-len("ces")] + "z"
		}
	}
	env := snowballstem.NewEnv(word)
	d.stem(env)
	if stem := Fold(env.Current()); stem != "" {
		return stem
	}
	return Fold(word)
}

func hasDigit(word string) bool { return strings.ContainsAny(word, "0123456789") }

// small reports whether a word carries little of a question's meaning. own is the question's language, maybe Unknown.
func (r *Ranker) small(word string, own Language) bool {
	if own != Unknown {
		return r.dialects[own].talk[word]
	}
	for _, d := range r.dialects {
		if d.talk[word] {
			return true
		}
	}
	return false
}
