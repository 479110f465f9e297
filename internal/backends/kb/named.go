package kb

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"voicegw/internal/textutil"
)

// Unresolved is a name without a match.
type Unresolved struct {
	Index  int    `json:"-"`      // its index in the given list
	Given  string `json:"name"`   // the name, cut to 80 bytes
	Reason string `json:"reason"` // the problem, with similar names
}

const mostNamed = 5

// ResolveAuthors returns the ids of persons, each once. given are ids, handles (ids without "person:", also after an @)
// or names; case and accents do not matter. A part of a name must be unique; a whole name means everybody who has it.
// people are those of Names.
func ResolveAuthors(given []string, people []Person) (ids []string, unresolved []Unresolved) {
	for i, text := range given {
		found, reason := author(strings.TrimSpace(text), people)
		if len(found) == 0 {
			unresolved = append(unresolved, Unresolved{Index: i, Given: clip(text), Reason: reason})
		}
		ids = append(ids, found...)
	}
	return textutil.Unique(ids), unresolved
}

func author(text string, people []Person) (ids []string, reason string) {
	id := strings.ToLower(strings.TrimPrefix(text, "@"))
	if !strings.Contains(id, ":") {
		id = string(TypePerson) + ":" + id
	}
	asked := wordsOf(text)
	var same, part []Person
	for _, p := range people {
		if p.ID == id {
			return []string{p.ID}, ""
		}
		has := wordsOf(p.Name)
		if len(asked) == 0 || len(has) == 0 {
			continue
		}
		if slices.Equal(asked, has) {
			same = append(same, p)
		} else if !slices.ContainsFunc(asked, func(word string) bool { return !slices.Contains(has, word) }) {
			part = append(part, p)
		}
	}
	switch {
	case len(same) > 0:
		return idsOf(same), ""
	case len(part) == 1:
		return idsOf(part), ""
	case len(part) > 1:
		return nil, "may be " + listed(part)
	}
	return nil, "matches no known person" + nearPerson(text, people)
}

// nearPerson returns a suggestion of the person with the most similar name, or "".
func nearPerson(text string, people []Person) string {
	known := map[string]Person{}
	var keys []string
	for _, p := range people {
		for _, form := range []string{nameKey(p.Name), handle(p.ID)} {
			if _, ok := known[form]; !ok && form != "" {
				known[form] = p
				keys = append(keys, form)
			}
		}
	}
	for _, form := range []string{nameKey(text), strings.ToLower(strings.TrimPrefix(text, "@"))} {
		if best := textutil.Nearest(form, keys); best != "" {
			return "; perhaps " + listed([]Person{known[best]}) + " is meant"
		}
	}
	return ""
}

// ResolveCategories returns the categories with the given names in every spelling of the records, each once; case,
// accents and punctuation do not matter. known are those of Names.
func ResolveCategories(given, known []string) (names []string, unresolved []Unresolved) {
	byKey := map[string][]string{}
	var keys []string
	for _, name := range known {
		key := nameKey(name)
		if byKey[key] == nil {
			keys = append(keys, key)
		}
		byKey[key] = append(byKey[key], name)
	}
	for i, text := range given {
		key := nameKey(text)
		if found := byKey[key]; found != nil {
			names = append(names, found...)
			continue
		}
		reason := "is not a known category"
		switch best := textutil.Nearest(key, keys); {
		case best != "":
			reason += fmt.Sprintf("; perhaps %q is meant", byKey[best][0])
		case len(keys) == 0:
			reason += "; no record has one"
		default:
			some := known[:min(len(known), mostNamed)]
			reason += "; known are " + strings.Join(some, ", ")
			if more := len(known) - len(some); more > 0 {
				reason += fmt.Sprintf(" and %d more", more)
			}
		}
		unresolved = append(unresolved, Unresolved{Index: i, Given: clip(text), Reason: reason})
	}
	return textutil.Unique(names), unresolved
}

// nameKey returns the form of a name for comparisons: its folded words with a space between them, or the text in lower
// case if it has no words.
func nameKey(text string) string {
	return cmp.Or(strings.Join(wordsOf(text), " "), strings.ToLower(strings.TrimSpace(text)))
}

func handle(id string) string {
	_, name, _ := strings.Cut(id, ":")
	return name
}

func idsOf(people []Person) []string {
	ids := make([]string, len(people))
	for i, p := range people {
		ids[i] = p.ID
	}
	return ids
}

func listed(people []Person) string {
	parts := make([]string, 0, mostNamed)
	for _, p := range people[:min(len(people), mostNamed)] {
		if p.Name == "" {
			parts = append(parts, handle(p.ID))
		} else {
			parts = append(parts, fmt.Sprintf("%s (%s)", p.Name, handle(p.ID)))
		}
	}
	text := strings.Join(parts, " or ")
	if more := len(people) - len(parts); more > 0 {
		text += fmt.Sprintf(" or %d more", more)
	}
	return text
}

func clip(s string) string { return textutil.Shorten(s, 80) }
