package rest

import (
	_ "embed"
	"strings"
	"unicode"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
)

var stopWords = set(`a about after all also am an and any are as at be been before being but by can could did do does
	doing done for from get give had has have he her here him his how i if in into is it its just let me my no not of
	off on or our out own over please she should so some such tell than that the their them then there these they this
	those to too under up us use was we were what when where which while who whom whose why will with would you your`)

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

func terms(text string) []string {
	var out []string
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) &&
			!unicode.IsDigit(r) && r != '\'' && r != '’'
	}) {
		w = strings.Trim(strings.ReplaceAll(w, "’", "'"), "'")
		w = strings.TrimSuffix(w, "'s")
		if w == "" || stopWords[w] {
			continue
		}
		out = append(out, stem(w))
	}
	return out
}

func stem(w string) string {
	env := snowballstem.NewEnv(w)
	english.Stem(env)
	return env.Current()
}
