package kb

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SnippetRunes bounds a snippet, including the marks of omissions.
const SnippetRunes = 240

var (
	markdownLink  = regexp.MustCompile(`!?\[([^\]\n]*)\]\([^)\n]*\)`)
	markdownMarks = regexp.MustCompile("\\*\\*|__|`+")
	lineMark      = regexp.MustCompile(`^(#{1,6}\s+|>\s?|[-*+]\s+|\d+[.)]\s+)`)
)

// Plain returns Markdown as one line of plain text: no marks, links without their targets, and
// punctuation between list items and headings.
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
	if strings.Contains(text, "](") { // most texts have neither, so this saves time
		text = markdownLink.ReplaceAllString(text, "$1")
	}
	if strings.ContainsAny(text, "*_`") {
		text = markdownMarks.ReplaceAllString(text, "")
	}
	return strings.TrimSuffix(strings.Join(strings.Fields(text), " "), ";")
}

// Ranker holds what every index of this module needs to answer alike: the analysis
// of words, snippets, and the fusion of rankings. It may be used by any number of
// goroutines at once. Package internal/backends/kb/local and package internal/backends/kb/qdrant have one each.
type Ranker struct {
	// Fixed after NewRanker.
	words *Analyzer
	fixed Language
}

// autoLanguage detects the language of each record from its text.
const autoLanguage = "auto"

// recordLanguages are the languages that records can be analyzed in, as ISO 639-1 codes.
func recordLanguages() []string {
	var all []string
	for _, language := range Languages() {
		all = append(all, string(language))
	}
	return all
}

// NewRanker makes a Ranker. language is the language of every record: an ISO 639-1 code of a
// language that can be analyzed, or "auto" or empty, which detect it from each record's text.
func NewRanker(language string) (*Ranker, error) {
	r := &Ranker{words: NewAnalyzer(), fixed: Language(language)}
	switch {
	case language == autoLanguage:
		r.fixed = Unknown
	case language != "" && !slices.Contains(recordLanguages(), language):
		return nil, fmt.Errorf("kb: language %q is not one of %s, %s", language, autoLanguage, strings.Join(recordLanguages(), ", "))
	}
	return r, nil
}

// Words is the analysis of words, and Language that of every record, Unknown where it is
// told by the text.
func (r *Ranker) Words() (a *Analyzer, fixed Language) { return r.words, r.fixed }

// Snippet returns the passage of a text, of at most SnippetRunes characters, with the most of the
// query's words; its beginning if it has none of them. terms are the words by which the record
// was found, if they differ from the query's; nil otherwise.
func (r *Ranker) Snippet(text, query string, terms map[string]bool) string {
	text = Plain(text)
	if utf8.RuneCountInString(text) <= SnippetRunes {
		return text
	}
	wanted := maps.Clone(terms)
	if wanted == nil {
		wanted = map[string]bool{}
	}
	for _, asked := range r.words.Question(query, Languages()) {
		for _, form := range slices.Concat(asked.Surfaces, asked.Forms) {
			wanted[form] = true
		}
	}
	reader := r.words.NewReader(r.fixed)
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

// runBytes is the largest distance between the first and the last word of a run: less than a
// snippet, so that some text stands around them.
const runBytes = SnippetRunes - 40

// bestRun finds the run of terms, close enough for one snippet, with the most different stems,
// then the most terms, then the first; -1 if there is no term.
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

// passage cuts the text around the bytes from start to end, at words, beginning
// with a sentence where one begins near enough.
func passage(text string, start, end int) string {
	const room = SnippetRunes - 2 // for the marks
	spare := room - utf8.RuneCountInString(text[start:end])
	from := back(text, start, max(spare/2, 0))
	if s := strings.LastIndexAny(text[from:start], ".!?;"); s >= 0 && from > 0 {
		from += s + 1
	}
	if from > 0 {
		from += wordStart(text[from:start])
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

// wordStart returns the number of bytes before the first beginning of a word.
func wordStart(s string) int {
	if i := strings.IndexFunc(s, unicode.IsSpace); i >= 0 {
		return i + 1
	}
	return 0
}

// back returns the index n characters before at.
func back(text string, at, n int) int {
	for ; n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(text[:at])
		at -= size
	}
	return at
}

// forward returns the index n characters after at.
func forward(text string, at, n int) int {
	for ; n > 0 && at < len(text); n-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}
