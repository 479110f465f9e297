package contacts

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// token is a word, or a single character that is not part of a word.
type token struct {
	text       string
	lower      string
	start, end int
	word       bool
	// gap is the space before a token: nothing, spaces, or the end of a line.
	gap gap
}

type gap byte

const (
	gapNone gap = iota
	gapSpace
	gapLine
	gapBlank // one or more empty lines
)

// tokens splits the unused part of a page into words and signs.
func tokens(p *page) []token {
	var out []token
	text := string(p.left)
	g, lines := gapBlank, 0
	for at := 0; at < len(text); {
		r, n := utf8.DecodeRuneInString(text[at:])
		switch {
		case r == '\n':
			lines++
			g = gapLine
			if lines > 1 {
				g = gapBlank
			}
			at += n
			continue
		case unicode.IsSpace(r):
			if g == gapNone {
				g = gapSpace
			}
			at += n
			continue
		}
		end := at + n
		isWord := unicode.IsLetter(r)
		if isWord {
			end = wordEnd(text, end)
		}
		out = append(out, token{text: text[at:end], lower: strings.ToLower(text[at:end]), start: at, end: end, word: isWord, gap: g})
		at, g, lines = end, gapNone, 0
	}
	return out
}

// wordEnd returns the end of a word that continues at an offset. Hyphens and apostrophes between letters belong to it.
func wordEnd(text string, at int) int {
	for at < len(text) {
		r, n := utf8.DecodeRuneInString(text[at:])
		if unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) {
			at += n
			continue
		}
		next, _ := utf8.DecodeRuneInString(text[at+n:])
		if !strings.ContainsRune("-'’‑", r) || !unicode.IsLetter(next) {
			return at
		}
		at += n
	}
	return at
}

// reader parses persons from tokens. Every read… method returns the end of its result, or its argument without one.
type reader struct {
	tokens []token
}

// persons finds names with a title, a position or both.
func persons(p *page) []hit[Person] {
	r := reader{tokens(p)}
	var hits []hit[Person]
	for i := 0; i < len(r.tokens); {
		person, end := r.readPerson(i)
		if end == i {
			i++
			continue
		}
		hits = append(hits, hit[Person]{r.tokens[i].start, r.tokens[end-1].end, person})
		i = end
	}
	return hits
}

// readPerson reads a person at i: a name with a title or position, or a position and its holder.
func (r reader) readPerson(i int) (Person, int) {
	if !r.tokens[i].word {
		return Person{}, i
	}
	person, end := r.readName(i)
	if end > i && !r.field(i, end, r.is(end, "/")) {
		position, after := r.readFollowing(end)
		person.Position = position
		if person.Title != "" || position != "" {
			return person, after
		}
	}
	return r.readHolder(i)
}

// at returns the token at i, or a token without a word after the end.
func (r reader) at(i int) token {
	if i < 0 || i >= len(r.tokens) {
		return token{gap: gapBlank}
	}
	return r.tokens[i]
}

// is reports whether the token at i is one of texts.
func (r reader) is(i int, texts ...string) bool {
	for _, t := range texts {
		if r.at(i).text == t {
			return true
		}
	}
	return false
}

// same reports whether at most spaces separate the token at i from the previous one.
func (r reader) same(i int) bool { g := r.at(i).gap; return g == gapNone || g == gapSpace }

// dot returns 1 if a dot is directly at i.
func (r reader) dot(i int) int {
	if r.at(i).text == "." && r.at(i).gap == gapNone {
		return 1
	}
	return 0
}

// span returns the text of the tokens from i to end, with single spaces.
func (r reader) span(i, end int) string {
	var b strings.Builder
	for ; i < end; i++ {
		if t := r.tokens[i]; b.Len() > 0 && t.gap != gapNone {
			b.WriteByte(' ')
		}
		b.WriteString(r.tokens[i].text)
	}
	return b.String()
}

// maxNameWords bounds a name.
const maxNameWords = 5

// readName reads a name, with its title if it has one.
func (r reader) readName(i int) (Person, int) {
	name := r.readTitle(i)
	titled := name > i
	if titled && (!r.at(name).word || !r.same(name)) {
		return Person{}, i
	}
	end, words := name, 0
	for words < maxNameWords {
		next := r.readNameWord(end, end == name && !titled)
		if next == end || end > name && !r.same(end) {
			break
		}
		end, words = next, words+1
	}
	if words == 0 || words == 1 && !titled || r.bare(name, end) {
		return Person{}, i
	}
	person := Person{Name: r.span(name, end), Title: r.span(i, name)}
	end, degrees := r.readDegrees(end)
	person.Title = strings.TrimPrefix(person.Title+degrees, ", ")
	return person, end
}

// bare reports whether a supposed name consists of initials, or is a company, a place or a part of a longer text.
func (r reader) bare(name, end int) bool {
	real := false
	for i := name; i < end; i++ {
		if notNames[r.tokens[i].lower] {
			return true
		}
		real = real || utf8.RuneCountInString(r.tokens[i].text) > 1 && !particles[r.tokens[i].lower]
	}
	return !real || r.same(end) && r.at(end).gap == gapNone && r.is(end, "@", "/", "_", "'", "’") && r.at(end+1).word
}

// field reports whether all words of a supposed name are fields of work, or at least one if slash is set.
func (r reader) field(i, end int, slash bool) bool {
	known, words := 0, 0
	for ; i < end; i++ {
		if t := r.tokens[i]; t.word {
			words++
			if fields[t.lower] || modifiers[t.lower] {
				known++
			}
		}
	}
	return known > 0 && (slash || known == words)
}

// readTitle reads "Prof. Dr. med.".
func (r reader) readTitle(i int) int {
	start := i
	for r.at(i).word && (i == start || r.same(i)) {
		t := r.at(i)
		first, _ := utf8.DecodeRuneInString(t.text)
		switch {
		case titles[t.lower] && unicode.IsUpper(first):
		case i > start && titleParts[t.lower]:
		default:
			return i
		}
		i += 1 + r.dot(i+1)
		for r.is(i, "-") && r.at(i).gap == gapNone && titleParts[r.at(i+1).lower] { // Dr.-Ing.
			i += 2 + r.dot(i+2)
		}
	}
	return i
}

// readNameWord reads "Ada", "J.", "van der Berg", "O'Brien" or "MÜLLER".
func (r reader) readNameWord(i int, first bool) int {
	t := r.at(i)
	start, _ := utf8.DecodeRuneInString(t.text)
	switch {
	case !t.word:
		return i
	case particles[t.lower] && !first:
		if next := r.readNameWord(i+1, false); next > i+1 && r.same(i+1) {
			return next
		}
		return i
	case stops[t.lower], roles[t.lower], roleWord(t):
		return i
	case !unicode.IsUpper(start) || strings.ContainsFunc(t.text, unicode.IsDigit):
		return i
	case utf8.RuneCountInString(t.text) == 1:
		if r.dot(i+1) == 0 {
			return i
		}
		return i + 2
	case !strings.ContainsFunc(t.text, unicode.IsLower) && utf8.RuneCountInString(t.text) < 4:
		return i // an abbreviation
	case suffixes[t.lower]:
		return i + 1 + r.dot(i+1)
	}
	return i + 1
}

// readDegrees reads ", PhD" and the like; the text begins with a comma.
func (r reader) readDegrees(i int) (end int, degrees string) {
	for {
		at := i
		if r.is(at, ",") {
			at++
		}
		if !degreeWords[r.at(at).lower] || !r.same(at) {
			return i, degrees
		}
		end := at + 1
		for r.dot(end) == 1 && r.at(end+1).word && r.at(end+1).gap == gapNone { // Ph.D., M.Sc.
			end += 2
		}
		end += r.dot(end)
		degrees += ", " + r.span(at, end)
		i = end
	}
}

// readFollowing reads the position after a name, and the words between them.
func (r reader) readFollowing(i int) (position string, end int) {
	at := i
	switch t := r.at(i); {
	case r.is(i, ",", "(", "|", "·", "•", ":"):
		at++
	case r.is(i, "-", "–", "—", "/") && t.gap != gapNone && r.at(i+1).gap != gapNone:
		at++
	case t.gap == gapLine: // a signature: the position on a line of its own
	case copulas[t.lower] && articles[r.at(i+1).lower]:
		at++
	default:
		return "", i
	}
	for articles[r.at(at).lower] {
		at++
	}
	if at > i && r.at(at).gap == gapBlank {
		return "", i
	}
	end, _ = r.readPosition(at, true)
	if end == at {
		return "", i
	}
	position = r.span(at, end)
	if r.is(i, "(") && r.is(end, ")") {
		end++
	}
	return position, end
}

// readHolder reads a position and then its holder: "our CEO, Ada Lovelace",
// "CTO: Charles Babbage", "CEO Ada Lovelace".
func (r reader) readHolder(i int) (Person, int) {
	end, whole := r.readPosition(i, false)
	if end == i {
		return Person{}, i
	}
	introduced := articles[r.at(i-1).lower]
	at := end
	switch {
	case r.is(end, ":"):
		at++
	case r.is(end, ",") && introduced:
		at++
	case copulas[r.at(end).lower] && introduced:
		at++
	case !r.same(end) || !r.at(end).word:
		return Person{}, i
	case whole && r.readTitle(end) == end: // "Head of Research Ada": where does it end?
		return Person{}, i
	}
	person, after := r.readName(at)
	if after == at || r.at(at).gap == gapBlank {
		return Person{}, i
	}
	person.Position = r.span(i, end)
	return person, after
}
