package kb

import (
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

// Language is the ISO 639-1 code of a supported language, or Unknown.
type Language string

// Unknown is the language of a text without clear signs.
const Unknown Language = ""

// Languages are all supported languages.
func Languages() []Language { return []Language{"en", "de", "es", "fr", "it", "pt", "nl"} }

// guessed are the languages of a short text of unknown language. They are few, because each adds a term for a word.
var guessed = []Language{"en", "de", "es", "fr"}

type dialect struct {
	stem  func(*snowballstem.Env) bool
	stops map[string]bool
	ends  []string
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
		"en": {stem: english.Stem, ends: []string{"ing", "ness", "ship"}},
		"de": {stem: german.Stem, ends: []string{"ung", "ungen", "keit", "heit", "lich", "schaft"}, marks: "äöüß"},
		"es": {stem: spanish.Stem, ends: []string{"ción", "ciones", "dad", "ería"}, marks: "ñ¿¡"},
		"fr": {stem: french.Stem, ends: []string{"eur", "eaux", "ité", "ée"}, marks: "çèêœ"},
		"it": {stem: italian.Stem, ends: []string{"zione", "zioni", "ità"}},
		"pt": {stem: portuguese.Stem, ends: []string{"ção", "ções", "dade"}, marks: "ãõ"},
		"nl": {stem: dutch.Stem, ends: []string{"heid", "lijk", "ingen"}},
	}
	for _, d := range all {
		d.talk, d.stops = map[string]bool{}, map[string]bool{}
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
				d.stops[word], d.stops[Fold(word)] = true, true
			default:
				d.stops[word] = true
			}
		}
	}
	return all
}

const (
	detectWords = 300
	// enough exceeds the score of one stop word, because "war" may be German or English.
	enough = 1.2
	// shortText is the maximum number of words in a text that may lack signs of its language.
	shortText = 12
)

// detect returns the language of a text by its stop words, endings and letters, or Unknown if no score is clearly
// highest.
func (r *Ranker) detect(tokens []Token) Language {
	var scores [7]float64
	languages := Languages()
	for _, t := range tokens[:min(len(tokens), detectWords)] {
		r.evidence(t.Text, languages, &scores)
	}
	order := slices.Sorted(slices.Values(scores[:]))
	best, second := order[len(order)-1], order[len(order)-2]
	if best < enough || best < 1.25*second {
		return Unknown
	}
	return languages[slices.Index(scores[:], best)]
}

// evidence adds one word's scores. A stop word of several languages counts less.
func (r *Ranker) evidence(word string, languages []Language, scores *[7]float64) {
	in := 0
	var stops [7]bool
	for i, language := range languages {
		if stops[i] = r.dialects[language].stops[word]; stops[i] {
			in++
		}
	}
	for i, language := range languages {
		d := r.dialects[language]
		if stops[i] {
			scores[i] += 1 / float64(in)
			continue
		}
		if len(word) > 5 && slices.ContainsFunc(d.ends, func(end string) bool { return strings.HasSuffix(word, end) }) {
			scores[i] += 0.4
		}
		if d.marks != "" && !ascii(word) && strings.ContainsAny(word, d.marks) {
			scores[i] += 0.5
		}
	}
}

// Stop reports whether a word is a stop word of a language.
func (r *Ranker) Stop(word string, language Language) bool {
	d := r.dialects[language]
	return d != nil && d.stops[word]
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

// small reports whether a word of a question in a language, which may be Unknown, says little about what is asked.
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
