package kb

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// Depth is the maximum number of records that each ranking (words, vectors) adds to the fusion.
	Depth = 50
	// fusionK is the k of reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009). It limits the weight of
	// first places.
	fusionK = 60
)

// Ranked is a record in a ranking.
type Ranked struct {
	ID    string
	Score float64 // BM25, or the cosine
	// Cover is the part of the question's words that the record has, 0 to 1. Rankings by vectors do not set it.
	Cover float64
}

// Wording is a wording of the question with its ranking by words.
type Wording struct {
	Text   string
	Weight float64  // 1 for the question itself and less for others
	Ranked []Ranked // at most Depth records, in any order
}

// Wordings returns the query itself, its alternatives, and its rewordings with synonyms of phrases.
func Wordings(q *Query, synonyms *Synonyms) []Wording {
	all := []Wording{{Text: q.Text, Weight: 1}}
	for _, text := range slices.Concat(q.Alternatives, synonyms.Rewordings(q.Text)) {
		all = append(all, Wording{Text: text, Weight: AlternativeWeight})
	}
	return all
}

// AlternativeWeight is the weight of all wordings but the first.
const AlternativeWeight = 0.75

// Fuse makes at most limit hits, without snippets, of the best records by words and by vectors, each at most Depth in
// any order. Hit.Score documents the scores. The first wording is the question. vectors may be empty. Fuse omits ids
// for which record returns false.
//
// A record whose whole title is in a wording gets a higher score by words; titles of two words and more are another
// ranking in the fusion.
func (r *Ranker) Fuse(wordings []Wording, vectors []Ranked, limit int, record func(id string) (Record, bool)) []Hit {
	hits := map[string]*Hit{}
	fetch := func(ranking []Ranked, set func(*Hit, float64)) []Ranked {
		var kept []Ranked
		for _, one := range ranking {
			h := hits[one.ID]
			if h == nil {
				rec, ok := record(one.ID)
				if !ok {
					continue
				}
				h = &Hit{Record: rec}
				hits[one.ID] = h
			}
			set(h, one.Score)
			kept = append(kept, one)
		}
		return kept
	}
	names := map[string]int{}
	worth := map[string]float64{}
	for _, w := range wordings {
		ranked := fetch(w.Ranked, func(h *Hit, s float64) { h.BM25 = max(h.BM25, s) })
		named := r.named(w.Text, hits)
		maps.Copy(names, named)
		join(worth, w, ranked, named)
	}
	ranking := make([]Ranked, 0, len(worth))
	for id, score := range worth {
		ranking = append(ranking, Ranked{ID: id, Score: score})
	}
	ranking = Best(ranking)
	if len(vectors) == 0 {
		for _, one := range ranking {
			hits[one.ID].Score = one.Score
		}
	} else {
		vectors = fetch(vectors, func(h *Hit, s float64) { h.Vector = s })
		slices.SortFunc(vectors, byScore)
		maps.Copy(names, r.named(wordings[0].Text, hits)) // vectors may have added hits
		fuse(hits, ranking, vectors, longNames(names))
	}
	maps.DeleteFunc(hits, func(_ string, h *Hit) bool { return h.Score == 0 }) // beyond Depth
	return sorted(hits, limit)
}

const also = 0.15 // the weight of a record's further wordings after the best one

// join adds a wording to the worth of records: the record's BM25 divided by the best record's, times the best record's
// Cover, times the wording's weight.
func join(worth map[string]float64, w Wording, ranked []Ranked, named map[string]int) {
	ranked = slices.Clone(ranked)
	for i := range ranked {
		ranked[i].Score *= raise(named[ranked[i].ID])
	}
	slices.SortFunc(ranked, byScore)
	for _, one := range ranked {
		score := one.Score / ranked[0].Score * min(ranked[0].Cover, 1) * w.Weight
		worth[one.ID] = min(max(worth[one.ID], score)+also*min(worth[one.ID], score), 1)
	}
}

func fuse(hits map[string]*Hit, rankings ...[]Ranked) {
	rankings = slices.DeleteFunc(rankings, func(r []Ranked) bool { return len(r) == 0 })
	for _, ranking := range rankings {
		for place, one := range ranking {
			hits[one.ID].Score += (fusionK + 1) / (fusionK + 1 + float64(place)) / float64(len(rankings))
		}
	}
}

// named returns the number of words in the titles that are wholly in the query.
func (r *Ranker) named(query string, hits map[string]*Hit) map[string]int {
	asked := r.sequence(query)
	names := map[string]int{}
	for id, h := range hits {
		if title := r.sequence(h.Record.Title); title != " " && strings.Contains(asked, title) {
			names[id] = strings.Count(title, " ") - 1
		}
	}
	return names
}

// sequence returns the English stems of a text's words, without stop words, with spaces around each.
func (r *Ranker) sequence(text string) string {
	stems := " "
	for _, t := range Tokens(text) {
		if !r.Stop(t.Text, "en") {
			stems += r.Stem(t.Text, "en") + " "
		}
	}
	return stems
}

// raise returns the factor of BM25 for a title with that many words in the query. A single word may be there by chance.
func raise(words int) float64 {
	switch words {
	case 0:
		return 1
	case 1:
		return 1.15
	}
	return 1.5
}

func longNames(names map[string]int) []Ranked {
	var long []Ranked
	for id, n := range names {
		if n >= 2 {
			long = append(long, Ranked{ID: id, Score: float64(n)})
		}
	}
	slices.SortFunc(long, byScore)
	return long
}

func byScore(a, b Ranked) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID)) }

func sorted(hits map[string]*Hit, limit int) []Hit {
	out := make([]Hit, 0, len(hits))
	for _, h := range hits {
		h.Score = min(max(math.Round(h.Score*1e4)/1e4, 1e-4), 1)
		out = append(out, *h)
	}
	slices.SortFunc(out, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Record.ID, b.Record.ID))
	})
	return out[:min(limit, len(out))]
}

// Best sorts a ranking, equal scores by id, and returns the Depth best.
func Best(ranking []Ranked) []Ranked {
	slices.SortFunc(ranking, byScore)
	return ranking[:min(len(ranking), Depth)]
}

// SnippetRunes bounds a snippet, including the marks of omissions.
const SnippetRunes = 240

var (
	markdownLink  = regexp.MustCompile(`!?\[([^\]\n]*)\]\([^)\n]*\)`)
	markdownMarks = regexp.MustCompile("\\*\\*|__|`+")
	lineMark      = regexp.MustCompile(`^(#{1,6}\s+|>\s?|[-*+]\s+|\d+[.)]\s+)`)
)

// Plain converts Markdown to one line of plain text, with punctuation between list items and headings.
func Plain(markdown string) string {
	var b strings.Builder
	for line := range strings.Lines(markdown) {
		line = strings.TrimSpace(line)
		mark := lineMark.FindString(line)
		line = strings.TrimSpace(line[len(mark):])
		if line == "" || strings.Trim(line, "-=|: ") == "" {
			continue
		}
		if mark != "" && !strings.ContainsRune(".,;:!?", rune(line[len(line)-1])) {
			if mark[0] == '#' {
				line += ":"
			} else {
				line += ";"
			}
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(line)
	}
	text := b.String()
	if strings.Contains(text, "](") { // saves time for most texts
		text = markdownLink.ReplaceAllString(text, "$1")
	}
	if strings.ContainsAny(text, "*_`") {
		text = markdownMarks.ReplaceAllString(text, "")
	}
	return strings.TrimSuffix(strings.Join(strings.Fields(text), " "), ";")
}

// Ranker is the part that all indexes share: the analysis of words, snippets, and the fusion of rankings. It may be
// used concurrently.
type Ranker struct {
	// Fixed after NewRanker.
	dialects map[Language]*dialect
	fixed    Language // of all records; Unknown if each record's text decides
}

// NewRanker makes a Ranker. language is that of all records, one of Languages; "auto" or empty means that each record's
// text decides.
func NewRanker(language string) (*Ranker, error) {
	r := &Ranker{dialects: load(), fixed: Language(language)}
	switch {
	case language == "auto":
		r.fixed = Unknown
	case language != "" && !slices.Contains(Languages(), r.fixed):
		return nil, fmt.Errorf("kb: language %q is not one of %s, %s", language, "auto", joined(Languages()))
	}
	return r, nil
}

// Snippet returns the passage of a text with the most words of the query, or its beginning if it has none, in at most
// SnippetRunes characters. terms are additional words of the search.
func (r *Ranker) Snippet(text, query string, terms map[string]bool) string {
	text = Plain(text)
	if utf8.RuneCountInString(text) <= SnippetRunes {
		return text
	}
	wanted := map[string]bool{}
	maps.Copy(wanted, terms)
	for _, asked := range r.Question(query, Languages()) {
		for _, form := range slices.Concat(asked.Surfaces, asked.Forms) {
			wanted[form] = true
		}
	}
	reader := r.NewReader()
	var found []passageTerm
	for _, term := range reader.Terms(text, reader.Language(text), false) {
		for _, form := range append([]string{term.Surface}, term.Forms...) {
			if wanted[form] {
				found = append(found, passageTerm{form, term.Start, term.End})
				break
			}
		}
	}
	first, last := bestRun(found)
	if first < 0 {
		return passage(text, 0, 0)
	}
	return passage(text, found[first].Start, found[last].End)
}

// passageTerm is a word that both the text and the query have.
type passageTerm struct {
	Stem       string
	Start, End int
}

// runBytes bounds a run. It is less than a snippet, to leave room for the text around the run.
const runBytes = SnippetRunes - 40

// bestRun returns the run of at most runBytes with the most different stems, then the most terms, then the first; -1
// without terms.
func bestRun(terms []passageTerm) (first, last int) {
	first, last = -1, -1
	best := 0
	count := map[string]int{}
	start := 0
	for end, term := range terms {
		count[term.Stem]++
		for terms[end].End-terms[start].Start > runBytes && start < end {
			if count[terms[start].Stem]--; count[terms[start].Stem] == 0 {
				delete(count, terms[start].Stem)
			}
			start++
		}
		if score := len(count)*1000 + end - start; score > best {
			best, first, last = score, start, end
		}
	}
	return first, last
}

const ellipsis = "…"

// passage cuts the text around the bytes from start to end, between words, and before a sentence if one begins near
// enough.
func passage(text string, start, end int) string {
	const room = SnippetRunes - 2 // for the marks
	spare := room - utf8.RuneCountInString(text[start:end])
	from := forward(text, 0, utf8.RuneCountInString(text[:start])-max(spare/2, 0))
	if s := strings.LastIndexAny(text[from:start], ".!?;"); s >= 0 && from > 0 {
		from += s + 1
	}
	if from > 0 { // the first word that begins there
		from += strings.IndexFunc(text[from:start], unicode.IsSpace) + 1
	}
	to := forward(text, from, room)
	if to < len(text) {
		if cut := strings.LastIndexFunc(text[from:to], unicode.IsSpace); cut > 0 && from+cut >= end {
			to = from + cut
		}
	}
	out := strings.TrimSpace(text[from:to])
	if from > 0 {
		out = ellipsis + out
	}
	if to < len(text) {
		out = strings.TrimRight(out, ",;:-") + ellipsis
	}
	return out
}

// forward returns the index n characters after at.
func forward(text string, at, n int) int {
	for ; n > 0 && at < len(text); n-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}
