package contacts

import (
	"bytes"
	_ "embed"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// wordLists are the lists of words: a name with a colon, then words in lower case.
//
//go:embed words.txt
var wordLists string

// lists are the sets of words by name. titleParts continue a title that has begun, enders end a position's complement,
// roleEndings make a German compound a position, stops begin with a capital but are not names, notNames turn the words
// around them into a company, a place or a thing. Two fields of work are not a name, and one before a slash is the first
// half of a position: "Data Science / Head of Analytics".
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

type token struct {
	text, lower string
	start, end  int
	word, upper bool // it begins with a letter, with a capital
	gap         gap  // before it
}

type gap byte

const (
	gapNone gap = iota
	gapSpace
	gapLine
	gapBlank // one or more empty lines, or an end of the text
)

func (t token) in(list string) bool { return lists[list][t.lower] }

func tokens(text []byte) reader {
	var all reader
	last := 0
	for at := 0; at < len(text); {
		first, n := utf8.DecodeRune(text[at:])
		end := at + n
		if unicode.IsSpace(first) {
			at = end
			continue
		}
		if unicode.IsLetter(first) {
			end = wordEnd(text, end)
		}
		t := token{text: string(text[at:end]), start: at, end: end}
		t.lower, t.word, t.upper = strings.ToLower(t.text), unicode.IsLetter(first), unicode.IsUpper(first)
		switch lines := bytes.Count(text[last:at], []byte("\n")); {
		case lines > 1 || last == 0:
			t.gap = gapBlank
		case lines == 1:
			t.gap = gapLine
		case last < at:
			t.gap = gapSpace
		}
		all, last, at = append(all, t), end, end
	}
	return all
}

// wordEnd returns the end of a word that continues at an offset. Hyphens and apostrophes between letters belong to it.
func wordEnd(text []byte, at int) int {
	for at < len(text) {
		r, n := utf8.DecodeRune(text[at:])
		if !inWord(r) && !unicode.IsMark(r) {
			next, _ := utf8.DecodeRune(text[at+n:])
			if !strings.ContainsRune("-'’‑", r) || !unicode.IsLetter(next) {
				return at
			}
		}
		at += n
	}
	return at
}

// reader parses persons from tokens. Its methods that read something return the end of it, or their argument if it is not
// there.
type reader []token

func persons(p *page) []hit[Person] {
	r := tokens(p.left)
	var hits []hit[Person]
	for i := 0; i < len(r); {
		person, end := r.person(i)
		if end == i {
			i++
			continue
		}
		hits = append(hits, hit[Person]{r[i].start, r[end-1].end, person})
		i = end
	}
	return hits
}

// at returns the token at i, or one without a word outside the text.
func (r reader) at(i int) token {
	if i < 0 || i >= len(r) {
		return token{gap: gapBlank}
	}
	return r[i]
}

func (r reader) is(i int, texts ...string) bool {
	return r.at(i).text != "" && slices.Contains(texts, r[i].text)
}

// same reports whether at most spaces separate the token at i from the previous one.
func (r reader) same(i int) bool { return r.at(i).gap <= gapSpace }

func (r reader) dot(i int) int {
	if r.is(i, ".") && r[i].gap == gapNone {
		return 1
	}
	return 0
}

// span returns the text of the tokens from i to end, with single spaces.
func (r reader) span(i, end int) string {
	var b strings.Builder
	for _, t := range r[i:end] {
		if b.Len() > 0 && t.gap != gapNone {
			b.WriteByte(' ')
		}
		b.WriteString(t.text)
	}
	return b.String()
}

// person reads a name with a title or position, or a position and its holder.
func (r reader) person(i int) (Person, int) {
	if !r[i].word {
		return Person{}, i
	}
	if person, end := r.name(i); end > i && !r.field(i, end) {
		position, after := r.following(end)
		person.Position = position
		if person.Title != "" || position != "" {
			return person, after
		}
	}
	return r.holder(i)
}

const maxNameWords = 5

func (r reader) name(i int) (Person, int) {
	name := r.title(i)
	titled := name > i
	if titled && (!r.at(name).word || !r.same(name)) {
		return Person{}, i
	}
	end, words := name, 0
	for ; words < maxNameWords; words++ {
		next := r.nameWord(end, words == 0 && !titled)
		if next == end || words > 0 && !r.same(end) {
			break
		}
		end = next
	}
	if words == 0 || words == 1 && !titled || r.bare(name, end) {
		return Person{}, i
	}
	person := Person{Name: r.span(name, end), Title: r.span(i, name)}
	end, degrees := r.degrees(end)
	person.Title = strings.TrimPrefix(person.Title+degrees, ", ")
	return person, end
}

// bare reports whether a supposed name consists of initials, or is a company, a place or a part of a longer text.
func (r reader) bare(name, end int) bool {
	whole := false
	for _, t := range r[name:end] {
		if t.in("notNames") {
			return true
		}
		whole = whole || utf8.RuneCountInString(t.text) > 1 && !t.in("particles")
	}
	return !whole || r.at(end).gap == gapNone && r.is(end, "@", "/", "_", "'", "’") && r.at(end+1).word
}

// field reports whether all words of a supposed name are fields of work, or at least one before a slash.
func (r reader) field(i, end int) bool {
	known, words := 0, 0
	for _, t := range r[i:end] {
		if t.word {
			words++
		}
		if t.in("fields") || t.in("modifiers") {
			known++
		}
	}
	return known > 0 && (known == words || r.is(end, "/"))
}

// title reads "Prof. Dr. med.".
func (r reader) title(i int) int {
	for start := i; r.at(i).word && (i == start || r.same(i)); {
		if t := r[i]; !(t.in("titles") && t.upper || i > start && t.in("titleParts")) {
			break
		}
		i += 1 + r.dot(i+1)
		for r.is(i, "-") && r[i].gap == gapNone && r.at(i+1).in("titleParts") { // Dr.-Ing.
			i += 2 + r.dot(i+2)
		}
	}
	return i
}

// nameWord reads "Ada", "J.", "van der Berg", "O'Brien" or "MÜLLER".
func (r reader) nameWord(i int, first bool) int {
	t := r.at(i)
	letters := utf8.RuneCountInString(t.text)
	switch {
	case t.in("particles") && !first:
		if next := r.nameWord(i+1, false); next > i+1 && r.same(i+1) {
			return next
		}
		return i
	case !t.upper || t.in("stops") || t.isRole() || strings.ContainsFunc(t.text, unicode.IsDigit):
		return i
	case letters == 1:
		return i + 2*r.dot(i+1)
	case letters < 4 && !strings.ContainsFunc(t.text, unicode.IsLower):
		return i // an abbreviation
	case t.in("suffixes"):
		return i + 1 + r.dot(i+1)
	}
	return i + 1
}

// degrees reads ", PhD" and the like; the text begins with a comma.
func (r reader) degrees(i int) (end int, degrees string) {
	for {
		at := i
		if r.is(at, ",") {
			at++
		}
		if !r.at(at).in("degreeWords") || !r.same(at) {
			return i, degrees
		}
		i = at + 1
		for r.dot(i) == 1 && r.at(i+1).word && r[i+1].gap == gapNone { // Ph.D., M.Sc.
			i += 2
		}
		i += r.dot(i)
		degrees += ", " + r.span(at, i)
	}
}

// following reads the position after a name, and the words between them.
func (r reader) following(i int) (position string, end int) {
	at := i
	switch t := r.at(i); {
	case r.is(i, ",", "(", "|", "·", "•", ":"),
		r.is(i, "-", "–", "—", "/") && t.gap != gapNone && r.at(i+1).gap != gapNone,
		t.in("copulas") && r.at(i+1).in("articles"):
		at++
	case t.gap == gapLine: // a signature: the position on a line of its own
	default:
		return "", i
	}
	for r.at(at).in("articles") {
		at++
	}
	if at > i && r.at(at).gap == gapBlank {
		return "", i
	}
	end, _ = r.position(at, true)
	if end == at {
		return "", i
	}
	position = r.span(at, end)
	if r.is(i, "(") && r.is(end, ")") {
		end++
	}
	return position, end
}

// holder reads a position and then its holder: "our CEO, Ada Lovelace", "CTO: Charles Babbage", "CEO Ada Lovelace".
func (r reader) holder(i int) (Person, int) {
	end, whole := r.position(i, false)
	if end == i {
		return Person{}, i
	}
	at := end
	switch introduced := r.at(i - 1).in("articles"); {
	case r.is(end, ":"), introduced && (r.is(end, ",") || r.at(end).in("copulas")):
		at++
	case !r.same(end) || !r.at(end).word, whole && r.title(end) == end: // "Head of Research Ada": where does it end?
		return Person{}, i
	}
	person, after := r.name(at)
	if after == at || r.at(at).gap == gapBlank {
		return Person{}, i
	}
	person.Position = r.span(i, end)
	return person, after
}

// The maximum numbers of words in a position.
const (
	maxModifiers  = 4
	maxComplement = 4
)

// position reads "Senior Product Designer", "Head of Research and Development" or "Founder & CEO". follows means that the
// name is before it; then it may have a department without a preposition ("VP Sales"). whole means that it has a
// complement, which has no clear end.
func (r reader) position(i int, follows bool) (end int, whole bool) {
	end, whole = r.role(i, follows)
	for end > i && r.is(end, "and", "&", "und", "/", "et", "y") && r.same(end) {
		next, more := r.role(end+1, follows)
		if next == end+1 || !r.same(end+1) {
			break
		}
		end, whole = next, more
	}
	return end, whole
}

func (r reader) role(i int, follows bool) (end int, whole bool) {
	head := i
	for n := 0; n < maxModifiers && r.modifier(head) && (n == 0 || r.same(head)); n++ {
		head++
	}
	// The last word that can be the head is the head: "Vice President", "Director General".
	for head >= i && (!r.at(head).isRole() || head > i && !r.same(head)) {
		head--
	}
	if head < i {
		return i, false
	}
	end = r.complement(head+1, follows)
	return end, end > head+1
}

// modifier reports whether a word can be before a role's head, or be the head.
func (r reader) modifier(i int) bool {
	t := r.at(i)
	return t.word && !t.in("stops") && (t.upper || t.in("modifiers") || t.isRole())
}

// isRole reports whether a word is a role, or a German compound that ends in one: Vertriebsleiterin.
func (t token) isRole() bool {
	if t.in("roles") || !t.upper {
		return t.in("roles")
	}
	stem := strings.TrimSuffix(t.lower, "in")
	for ending := range lists["roleEndings"] {
		for _, word := range []string{stem, t.lower} {
			if before, ok := strings.CutSuffix(word, ending); ok && len(before) > 2 {
				return true
			}
		}
	}
	return false
}

// complement reads a role's complement: "of Research and Development", "für Vertrieb".
func (r reader) complement(i int, follows bool) int {
	at := i
	if r.at(i).in("prepositions") && r.same(i) {
		at++
		for r.at(at).in("articles") && r.same(at) {
			at++
		}
	} else if !follows || !r.at(i).upper { // "Director said"
		return i
	}
	start, capitals := at, r.at(at).upper
	for n := 0; n < maxComplement && r.complementWord(at, capitals); n++ {
		at++
		if joiner := r.at(at); (joiner.text == "&" || joiner.in("joins")) && r.same(at) &&
			r.complementWord(at+1, capitals) && (!capitals || !r.complementWord(at+2, true)) {
			at += 2
			break
		}
	}
	if at == start {
		return i
	}
	return at
}

func (r reader) complementWord(i int, capitals bool) bool {
	t := r.at(i)
	return t.word && r.same(i) && !t.in("joins") && !t.in("stops") && r.title(i) == i &&
		t.upper == capitals && (capitals || !t.in("enders"))
}
