package local

import (
	"cmp"
	"slices"
	"strings"
)

const maxNear = 32 // the maximum length of words for which near words are searched

// edits returns how many typos a word with that many letters may have.
func edits(letters int) int {
	switch {
	case letters < 4:
		return 0
	case letters < 8:
		return 1
	}
	return 2
}

// parts splits a word into one more part than the number of typos allowed: in a word with that many typos one of the
// parts is unchanged, shifted by at most a place or two (the pigeonhole principle of Li, Deng, Wang and Feng,
// "Pass-Join", VLDB 2011). A swap of two letters across a cut changes two parts; swaps are looked up separately.
func parts(word []rune) []string {
	n := edits(len(word)) + 1
	out := make([]string, n)
	for i := range n {
		out[i] = string(word[i*len(word)/n : (i+1)*len(word)/n])
	}
	return out
}

func partKey(letters, part int, text string) string {
	return string([]byte{byte(letters), byte(part)}) + text
}

const maxCompared = 4000

type neighbour struct {
	at       int32
	distance int
}

// neighbours returns the words within a number of typos of a word, at most limit: the nearest first, and among equals
// those that more records contain.
func (v *vocabulary) neighbours(word string, limit int) []neighbour {
	runes := []rune(word)
	most := edits(len(runes))
	if most == 0 || len(runes) > maxNear {
		return nil
	}
	var found []neighbour
	seen := map[int32]bool{}
	try := func(at int32) {
		if seen[at] || len(seen) >= maxCompared {
			return
		}
		seen[at] = true
		s := &v.surfaces[at]
		if s.records <= 0 || s.text == word {
			return
		}
		other := []rune(s.text)
		if d := distance(runes, other, min(most, edits(len(other)))); d >= 0 {
			found = append(found, neighbour{at, d})
		}
	}
	swapped := slices.Clone(runes)
	swaps := func(each func()) {
		for i := range len(swapped) - 1 {
			swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
			each()
			swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
		}
	}
	swaps(func() {
		if at, ok := v.byText[string(swapped)]; ok {
			try(at)
		}
	})
	v.sharing(runes, most, try)
	if len(found) == 0 && most > 1 { // a swap across a cut, and another typo
		swaps(func() { v.sharing(swapped, most-1, try) })
	}
	slices.SortFunc(found, func(a, b neighbour) int {
		x, y := &v.surfaces[a.at], &v.surfaces[b.at]
		return cmp.Or(a.distance-b.distance, int(y.records-x.records), strings.Compare(x.text, y.text))
	})
	return found[:min(len(found), limit)]
}

// sharing calls try with the words that share a part with a word, so with all words within that
// many typos of it, except for swaps.
func (v *vocabulary) sharing(word []rune, most int, try func(at int32)) {
	for letters := max(len(word)-most, edges); letters <= len(word)+most; letters++ {
		n := edits(letters) + 1
		for part := range n {
			from, size := part*letters/n, (part+1)*letters/n-part*letters/n
			for start := max(0, from-most); start <= min(len(word)-size, from+most); start++ {
				for _, at := range v.near[partKey(letters, part, string(word[start:start+size]))] {
					try(at)
				}
			}
		}
	}
}

// distance returns the number of letters to insert, delete, replace or swap with the next one to turn one word into the
// other (Damerau and Levenshtein, optimal string alignment); -1 if it is more than most.
func distance(a, b []rune, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return -1
	}
	var rows [3][maxNear + 3]int8
	before, row, next := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		row[j] = int8(j)
	}
	for i := 1; i <= len(a); i++ {
		next[0] = int8(i)
		least := next[0]
		for j := 1; j <= len(b); j++ {
			cost := int8(1)
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(next[j-1]+1, row[j]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, before[j-2]+1)
			}
			next[j] = d
			least = min(least, d)
		}
		if int(least) > most {
			return -1
		}
		before, row, next = row, next, before
	}
	if d := int(row[len(b)]); d <= most {
		return d
	}
	return -1
}

// sounds are letters that sound alike in English, German and Spanish, longest first.
var sounds = strings.NewReplacer(
	"tsch", "$", "sch", "$", "sh", "$", "tch", "$", "ch", "$",
	"x", "ks", "ph", "f", "th", "t", "dt", "t", "ck", "k", "qu", "k", "gh", "g", "wh", "v", "rh", "r", "kn", "n", "wr", "r",
	"ai", "ai", "ei", "ai", "ey", "ai", "ay", "ai", "ie", "i", "ee", "i", "ea", "i", "oo", "u", "ou", "u", "ue", "u", "oe", "o", "ae", "e",
	"c", "k", "q", "k", "z", "s", "tz", "s", "y", "i", "w", "v", "j", "i", "d", "t", "b", "p",
)

// soundOf returns approximately how a word sounds: words with the same sound are confused
// in speech. It is empty for a word that is too short.
func soundOf(word string) string {
	if !lettersOnly(word) || len(word) < edges {
		return ""
	}
	s := sounds.Replace(word)
	var b strings.Builder
	for i := range len(s) {
		switch {
		case i > 0 && s[i] == s[i-1], s[i] == 'h' && i > 0:
		default:
			b.WriteByte(s[i])
		}
	}
	if b.Len() < 3 {
		return ""
	}
	return b.String()
}

// code splits a word of letters and digits where one follows the other, because a question may contain "x200" for "X
// 200"; nil for a word of only letters or only digits, and for one with a part that no record contains.
func (v *vocabulary) code(word string) []string {
	var all []string
	start := 0
	for i := 1; i <= len(word); i++ {
		if i < len(word) && isDigit(word[i]) == isDigit(word[i-1]) {
			continue
		}
		all = append(all, word[start:i])
		start = i
		if !v.has(all[len(all)-1]) {
			return nil
		}
	}
	if len(all) < 2 || len(all) > maxCodeParts {
		return nil
	}
	return all
}

const maxCodeParts = 5

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// links are the letters that join the parts of a German compound.
var links = []string{"", "s", "es", "n", "en", "er", "e", "ns"}

const leastPart = 4 // the minimum length of a compound's part

// split splits a word into two or three words that records contain; nil if it cannot.
func (v *vocabulary) split(word string) []string {
	if len(word) < 2*leastPart || len(word) > maxNear || !lettersOnly(word) {
		return nil
	}
	// Try the longest head first, because the head is the subject of a compound.
	for cut := leastPart; cut <= len(word)-leastPart; cut++ {
		if head := word[cut:]; v.has(head) {
			if first := v.without(word[:cut]); first != "" {
				return []string{first, head}
			}
			if rest := v.split(word[:cut]); len(rest) == 2 {
				return append(rest, head)
			}
		}
	}
	return nil
}

// without returns a first part without the letters that join it to the next; empty if it is not a word.
func (v *vocabulary) without(part string) string {
	for _, link := range links {
		if stem, ok := strings.CutSuffix(part, link); ok && len(stem) >= leastPart && v.has(stem) {
			return stem
		}
	}
	return ""
}

func (v *vocabulary) has(word string) bool {
	at, ok := v.byText[word]
	return ok && v.surfaces[at].records > 0 || v.terms[word] > 0
}
