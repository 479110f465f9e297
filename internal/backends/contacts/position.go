package contacts

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The maximum numbers of words in a position.
const (
	maxModifiers  = 4
	maxComplement = 4
)

// readPosition reads a position, such as "Senior Product Designer", "Head of Research and Development" or "Founder &
// CEO". follows means that the name is before it; then it may have a department without a preposition ("VP Sales").
// whole means that it has a complement, which has no clear end.
func (r reader) readPosition(i int, follows bool) (end int, whole bool) {
	end, whole = r.readRole(i, follows)
	for end > i && r.is(end, "and", "&", "und", "/", "et", "y") && r.same(end) {
		next, more := r.readRole(end+1, follows)
		if next == end+1 || !r.same(end+1) {
			break
		}
		end, whole = next, more
	}
	return end, whole
}

// readRole reads one role.
func (r reader) readRole(i int, follows bool) (end int, whole bool) {
	head := i
	for n := 0; n < maxModifiers && r.modifier(head) && (n == 0 || r.same(head)); n++ {
		head++
	}
	// The last word that can be the head is the head: "Vice President", "Director General".
	for head >= i && (!isRole(r.at(head)) || head > i && !r.same(head)) {
		head--
	}
	if head < i {
		return i, false
	}
	end = head + 1
	if c := r.readComplement(end, follows); c > end {
		return c, true
	}
	return end, false
}

// modifier reports whether a word can be before a role's head, or be the head.
func (r reader) modifier(i int) bool {
	t := r.at(i)
	if !t.word || stops[t.lower] {
		return false
	}
	first, _ := utf8.DecodeRuneInString(t.text)
	return unicode.IsUpper(first) || modifiers[t.lower] || isRole(t)
}

func isRole(t token) bool { return t.word && (roles[t.lower] || roleWord(t)) }

// roleWord reports whether a word is a compound that ends in a role, as in German:
// Vertriebsleiterin.
func roleWord(t token) bool {
	first, _ := utf8.DecodeRuneInString(t.text)
	if !unicode.IsUpper(first) {
		return false
	}
	stem := strings.TrimSuffix(t.lower, "in")
	for _, ending := range roleEndings {
		if len(stem) > len(ending)+2 && strings.HasSuffix(stem, ending) || strings.HasSuffix(t.lower, ending) &&
			len(t.lower) > len(ending)+2 {
			return true
		}
	}
	return false
}

// readComplement reads a role's complement: "of Research and Development", "für Vertrieb".
func (r reader) readComplement(i int, follows bool) int {
	at := i
	if prepositions[r.at(i).lower] && r.same(i) {
		at++
		for articles[r.at(at).lower] && r.same(at) {
			at++
		}
	} else if !follows {
		return i
	}
	start, capitals := at, startsUpper(r.at(at))
	if !capitals && at == i {
		return i // "Director said"
	}
	for n := 0; n < maxComplement && r.complementWord(at, capitals); n++ {
		at++
		if joiner := r.at(at); (joiner.text == "&" || joins[joiner.lower]) && r.same(at) &&
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
	if !t.word || !r.same(i) || joins[t.lower] || stops[t.lower] || r.readTitle(i) > i {
		return false
	}
	return startsUpper(t) == capitals && (capitals || !enders[t.lower])
}

func startsUpper(t token) bool {
	first, _ := utf8.DecodeRuneInString(t.text)
	return t.word && unicode.IsUpper(first)
}
