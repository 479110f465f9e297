package kb

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// The limits of a file of synonyms. An entry that exceeds one is a Problem.
const (
	maxSynonymBytes = 1 << 20
	MaxSynonymLines = 10_000 // bounds the lines with entries
	maxSynonyms     = 32     // names in a line
	maxSynonymWords = 6      // words of a name
)

// Synonyms are equivalent words and phrases in questions. They are immutable; a nil *Synonyms is empty.
type Synonyms struct {
	words   map[string][]string // single words, folded
	phrases map[string][]phrase // by their first word
}

// phrase has the replacements of a phrase in a question.
type phrase struct {
	from []string
	to   []string // whole texts
}

// ParseSynonyms parses a file of synonyms. In a line "a, b", each name also finds the others. In a line "a, b => c, d",
// the names on the left also find those on the right. Case and accents do not matter. It ignores empty lines, the rest
// of a line after a #, and lines with a Problem.
func ParseSynonyms(name string, r io.Reader) (*Synonyms, []Problem) {
	s := &Synonyms{words: map[string][]string{}, phrases: map[string][]phrase{}}
	var problems []Problem
	lines := bufio.NewScanner(io.LimitReader(r, maxSynonymBytes+1))
	lines.Buffer(make([]byte, 0, 4096), 64<<10)
	line, entries, size := 0, 0, 0
	for lines.Scan() {
		line++
		if size += len(lines.Bytes()) + 1; size > maxSynonymBytes+1 {
			return s, append(problems, Problem{File: name, Line: line,
				Message: fmt.Sprintf("the file has more than %d bytes; the rest is ignored", maxSynonymBytes)})
		}
		text, _, _ := strings.Cut(lines.Text(), "#")
		if strings.TrimSpace(strings.TrimPrefix(text, "\ufeff")) == "" {
			continue
		}
		if entries++; entries > MaxSynonymLines {
			return s, append(problems, Problem{File: name, Line: line,
				Message: fmt.Sprintf("more than %d lines; the rest is ignored", MaxSynonymLines)})
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

// line adds the entry of a line, or returns its problem.
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
			switch n := len(wordsOf(name)); {
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
		return `has one name without a synonym; write "a, b" or "a => b"`
	default:
		for _, from := range names[0] {
			s.add(from, names[0])
		}
	}
	return ""
}

func (s *Synonyms) add(from string, to []string) {
	first := wordsOf(from)
	p := phrase{from: first}
	for _, name := range to {
		other := wordsOf(name)
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

func wordsOf(text string) []string {
	var all []string
	for _, t := range Tokens(text) {
		all = append(all, Fold(t.Text))
	}
	return all
}

const maxRewordings = 4

// Words returns the synonyms of a folded word.
func (s *Synonyms) Words(word string) []string {
	if s == nil {
		return nil
	}
	return s.words[word]
}

// Rewordings returns the question with one replaced phrase in each result.
func (s *Synonyms) Rewordings(question string) []string {
	if s == nil || len(s.phrases) == 0 {
		return nil
	}
	tokens := Tokens(question)
	asked := wordsOf(question)
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
