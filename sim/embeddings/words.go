package embeddings

import (
	_ "embed"
	"strings"
	"unicode"
	"unicode/utf8"
)

// stopWords do not show what a text is about.
var stopWords = set(`a about after all also am an and any are as at be been before being but by can could did do does doing done for from get give had
	has have he her here him his how i if in into is it its just let me my no not of off on or our out own over please she should so some such tell than
	that the their them then there these they this those to too under up us use was we were what when where which while who whom whose why will with
	would you your`)

// groupLines are common English words with related meanings: all that this package knows about
// meaning. Each line is a group, its words as stem returns them or unchanged.
//
//go:embed groups.txt
var groupLines string

// groups maps a stem to the first word of its group.
var groups = func() map[string]string {
	m := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(groupLines), "\n") {
		words := strings.Fields(line)
		for _, w := range words {
			if s := stem(w); m[s] == "" {
				m[s] = words[0]
			}
		}
	}
	return m
}()

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// terms returns the stems of the meaningful words of a text, in order.
func terms(text string) []string {
	var out []string
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' && r != '’' }) {
		w = strings.Trim(strings.ReplaceAll(w, "’", "'"), "'")
		w = strings.TrimSuffix(w, "'s")
		if w == "" || stopWords[w] {
			continue
		}
		out = append(out, stem(w))
	}
	return out
}

// endings are removed from words, the longest first, with their replacements. There are
// few: two words that wrongly lose the same ending still match.
var endings = []struct{ end, instead string }{
	{"isations", "ise"}, {"izations", "ize"}, {"isation", "ise"}, {"ization", "ize"}, {"ational", "ate"}, {"fulness", "ful"}, {"ousness", "ous"},
	{"ations", "ate"}, {"ation", "ate"}, {"ments", ""}, {"ment", ""}, {"ities", ""}, {"ingly", ""}, {"edly", ""}, {"ness", ""}, {"ings", ""},
	{"ing", ""}, {"ies", "y"}, {"ied", "y"}, {"ers", ""}, {"ity", ""}, {"est", ""}, {"ed", ""}, {"er", ""}, {"es", ""}, {"ly", ""}, {"s", ""}, {"e", ""},
}

// stem removes one ending from a word, if at least three letters are left, and undoes a
// doubled consonant.
func stem(w string) string {
	for _, e := range endings {
		root, ok := strings.CutSuffix(w, e.end)
		if !ok || utf8.RuneCountInString(root) < 3 || e.end == "s" && strings.HasSuffix(root, "s") {
			continue
		}
		if e.instead != "" {
			return strings.TrimSuffix(root+e.instead, "e")
		}
		if n := len(root); n > 3 && root[n-1] == root[n-2] && strings.IndexByte("bdgmnprt", root[n-1]) >= 0 {
			root = root[:n-1]
		}
		return strings.TrimSuffix(root, "e")
	}
	return w
}
