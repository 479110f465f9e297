package kb

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// The limits of a file of synonyms. An entry beyond one is a Problem and ignored.
const (
	// maxSynonymBytes bounds the file.
	maxSynonymBytes = 1 << 20
	// MaxSynonymLines bounds the lines with entries.
	MaxSynonymLines = 10_000
	// maxSynonyms bounds the names in one line, maxSynonymWords the words of one name.
	maxSynonyms     = 32
	maxSynonymWords = 6
)

// Synonyms are words and phrases that are equivalent to others in questions. They do not change
// after ParseSynonyms, and a nil *Synonyms is empty.
type Synonyms struct {
	words   map[string][]string // one word for another, folded
	phrases map[string][]phrase // by their first word
}

// phrase holds the replacements for several words of a question.
type phrase struct {
	from []string
	to   []string // whole texts
}

// ParseSynonyms reads a file of synonyms. A line is either a list with commas, in which each name
// finds the others, or "a, b => c, d", in which a question for a name on the left finds those on
// the right, and not the reverse. Empty lines, and everything after a #, are ignored. Names are
// compared like the words of questions: without capitals and accents. Lines with mistakes are
// Problems with their number; the other lines count.
func ParseSynonyms(name string, r io.Reader) (*Synonyms, []Problem) {
	s := &Synonyms{words: map[string][]string{}, phrases: map[string][]phrase{}}
	var problems []Problem
	lines := bufio.NewScanner(io.LimitReader(r, maxSynonymBytes+1))
	lines.Buffer(make([]byte, 0, 4096), 64<<10)
	line, told, size := 0, 0, 0
	for lines.Scan() {
		line++
		if size += len(lines.Bytes()) + 1; size > maxSynonymBytes+1 {
			return s, append(problems, Problem{File: name, Line: line,
				Message: fmt.Sprintf("the file has more than %d bytes; the rest is left out", maxSynonymBytes)})
		}
		text, _, _ := strings.Cut(lines.Text(), "#")
		if strings.TrimSpace(strings.TrimPrefix(text, "\ufeff")) == "" {
			continue
		}
		if told++; told > MaxSynonymLines {
			return s, append(problems, Problem{File: name, Line: line,
				Message: fmt.Sprintf("more than %d lines; the rest is left out", MaxSynonymLines)})
		}
		if wrong := s.line(strings.TrimPrefix(text, "\ufeff")); wrong != "" {
			problems = append(problems, Problem{File: name, Line: line, Message: wrong})
		}
	}
	if err := lines.Err(); err != nil {
		problems = append(problems, Problem{File: name, Line: line + 1, Message: "cannot be read: " + err.Error()})
	}
	return s, problems
}

// line reads one line, or says what is wrong with it.
func (s *Synonyms) line(text string) (wrong string) {
	if !utf8.ValidString(text) {
		return "is not UTF-8"
	}
	sides := strings.Split(text, "=>")
	if len(sides) > 2 {
		return `has more than one "=>"; write "a, b => c"`
	}
	var names [2][]string
	for i, side := range sides {
		for part := range strings.SplitSeq(side, ",") {
			name := strings.Join(strings.Fields(part), " ")
			switch n := len(folded(name)); {
			case n == 0:
				return fmt.Sprintf("has a name without a word (%.20q); write names between commas", name)
			case n > maxSynonymWords:
				return fmt.Sprintf("has a name of %d words (%.40q); at most %d", n, name, maxSynonymWords)
			}
			names[i] = append(names[i], name)
		}
	}
	switch {
	case len(names[0])+len(names[1]) > maxSynonyms:
		return fmt.Sprintf("has more than %d names", maxSynonyms)
	case len(sides) == 2:
		for _, from := range names[0] {
			s.add(from, names[1])
		}
	case len(names[0]) == 1:
		return `has one name and nothing that it stands for; write "a, b" or "a => b"`
	default:
		for _, from := range names[0] {
			s.add(from, names[0])
		}
	}
	return ""
}

// add lets one name find others.
func (s *Synonyms) add(from string, to []string) {
	first := folded(from)
	p := phrase{from: first}
	for _, name := range to {
		other := folded(name)
		switch {
		case slices.Equal(first, other):
		case len(first) == 1 && len(other) == 1:
			if !slices.Contains(s.words[first[0]], other[0]) {
				s.words[first[0]] = append(s.words[first[0]], other[0])
			}
		default:
			p.to = append(p.to, name)
		}
	}
	if len(p.to) > 0 {
		s.phrases[first[0]] = append(s.phrases[first[0]], p)
	}
}

func folded(text string) []string {
	var all []string
	for _, t := range Tokens(text) {
		all = append(all, Fold(t.Text))
	}
	return all
}

// maxRewordings bounds what Rewordings returns.
const maxRewordings = 4

// Words returns the synonyms of a folded word.
func (s *Synonyms) Words(word string) []string {
	if s == nil {
		return nil
	}
	return s.words[word]
}

// Rewordings returns the question with phrases replaced, one in each, at most four.
func (s *Synonyms) Rewordings(question string) []string {
	if s == nil || len(s.phrases) == 0 {
		return nil
	}
	tokens := Tokens(question)
	asked := make([]string, len(tokens))
	for i, t := range tokens {
		asked[i] = Fold(t.Text)
	}
	var all []string
	for i := range asked {
		for _, p := range s.phrases[asked[i]] {
			if i+len(p.from) > len(asked) || !slices.Equal(asked[i:i+len(p.from)], p.from) {
				continue
			}
			for _, to := range p.to {
				if len(all) == maxRewordings {
					return all
				}
				all = append(all, question[:tokens[i].Start]+to+question[tokens[i+len(p.from)-1].End:])
			}
		}
	}
	return all
}
