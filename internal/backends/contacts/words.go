package contacts

import (
	_ "embed"
	"strings"
)

// wordLists are the lists of words: a name with a colon, then words in lower case.
//
//go:embed words.txt
var wordLists string

// lists are the sets of words by name.
var lists = func() map[string]map[string]bool {
	all := map[string]map[string]bool{}
	var list map[string]bool
	for _, word := range strings.Fields(wordLists) {
		if name, ok := strings.CutSuffix(word, ":"); ok {
			list = map[string]bool{}
			all[name] = list
		} else {
			list[word] = true
		}
	}
	return all
}()

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// The words that identify persons.
var (
	titles = lists["titles"]
	// titleParts continue a title that has begun.
	titleParts   = lists["titleParts"]
	degreeWords  = lists["degreeWords"]
	suffixes     = lists["suffixes"]
	particles    = lists["particles"]
	articles     = lists["articles"]
	copulas      = lists["copulas"]
	prepositions = lists["prepositions"]
	joins        = lists["joins"]
	// enders are lower-case words that end a complement.
	enders = lists["enders"]

	modifiers = lists["modifiers"]

	roles = lists["roles"]
	// roleEndings make a German compound a role, with or without "in".
	roleEndings = []string{"leiter", "führer", "chef", "manager", "direktor", "ingenieur", "entwickler", "berater", "assistent", "referent",
		"beauftragte", "beauftragter", "präsident", "sprecher", "architekt", "anwalt", "anwältin", "gründer", "vorsitzende", "vorsitzender"}

	// fields are fields of work. Two of them are not a name, and one before a slash is the
	// first half of a position: "Data Science / Head of Analytics".
	fields = lists["fields"]

	// stops begin with a capital but are not names, mostly at the start of a sentence.
	stops = lists["stops"]
	// notNames turn the words around them into a company, a place or a thing.
	notNames = lists["notNames"]
)
