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

// wordStart returns the index of the first word that begins in s.
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
