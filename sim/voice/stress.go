package voice

import (
	"cmp"
	"slices"
	"strings"
)

// stressed puts stress on the sounds of a word that came from the spelling rules, and weakens the unstressed vowels.
func stressed(s []sound, word string) []sound {
	out := slices.Clone(s)
	var heart []int // the vowels
	for i, x := range out {
		if x.ph.isVowel() {
			heart = append(heart, i)
		}
	}
	if len(heart) == 0 {
		return out
	}
	main := mainStress(out, heart, word)
	for k := main; k >= 0; k -= 2 {
		vowel := &out[heart[k]]
		vowel.stress, vowel.ph = 2, cmp.Or(full[vowel.ph], vowel.ph)
	}
	out[heart[main]].stress = 1
	for k := main + 2; k < len(heart); k += 2 {
		if diphthong(out[heart[k]].ph) {
			out[heart[k]].stress = 2
		}
	}
	for k, i := range heart {
		if out[i].stress == 0 {
			reduce(out, heart, k)
		}
	}
	return out
}

// full are the vowels that weak ones become under stress.
var full = map[phone]phone{phAX: phAH, phIX: phIH, phAXR: phER}

func diphthong(p phone) bool { return p == phEY || p == phAY || p == phOY || p == phAW }

func reduce(s []sound, heart []int, k int) {
	i := heart[k]
	switch ph := s[i].ph; {
	case ph == phIH, ph == phEH && i == 0:
		s[i].ph = phIX
	case ph == phAE && k == 0 && i+2 < len(s) && !s[i+1].ph.isVowel() && !s[i+2].ph.isVowel(): // "activity" keeps its first vowel
	case ph == phAE, ph == phAA, ph == phAH, ph == phEH:
		s[i].ph = phAX
	case ph == phER:
		s[i].ph = phAXR
	}
}

// fixedStress lists endings that determine the stress: how many vowels before the end it is.
var fixedStress = []struct {
	ending string
	back   int
}{
	{"ation", 2}, {"ition", 2}, {"ution", 2}, {"tions", 2}, {"sions", 2}, {"tion", 2}, {"sion", 2}, {"cian", 2}, {"cial", 2},
	{"tial", 2}, {"cious", 2}, {"tious", 2},
	{"ility", 4}, {"ity", 3}, {"ities", 3}, {"ical", 3}, {"ically", 3}, {"ics", 2}, {"ic", 2}, {"ious", 3}, {"eous", 3},
	{"ian", 3}, {"ial", 3}, {"iar", 3}, {"ium", 3},
	{"logy", 3}, {"graphy", 3}, {"meter", 3}, {"metry", 3}, {"cracy", 3}, {"ize", 3}, {"ized", 3}, {"ify", 3}, {"ified", 3},
	{"ate", 3}, {"ated", 4}, {"ates", 3}, {"ating", 4},
	{"eer", 1}, {"ee", 1}, {"ette", 1}, {"ique", 1}, {"esque", 1}, {"self", 1}, {"selves", 1}, {"oo", 1}, {"ade", 1},
	{"aire", 1}, {"ain", 1},
}

var weakPrefixes = []string{"re", "de", "be", "pre", "con", "com", "ex", "en", "em", "ab", "ac", "ad", "af", "al", "ap",
	"ar", "as", "at", "a", "in", "im", "dis", "mis", "un", "sub", "sur", "sup", "pro", "per", "for", "to", "ob", "op", "e", "trans"}

// mainStress returns the index of the stressed vowel.
func mainStress(s []sound, heart []int, word string) int {
	n := len(heart)
	if n == 1 {
		return 0
	}
	for _, f := range fixedStress {
		if strings.HasSuffix(word, f.ending) && n >= f.back && (n > 2 || f.back == 1) {
			return settle(s, heart, n-f.back)
		}
		if strings.HasSuffix(word, f.ending) && f.back == 2 && n == 2 {
			return 0
		}
	}
	if n == 2 {
		if startsWeak(word) && strongEnd(s, heart) {
			return 1
		}
		return settle(s, heart, 0)
	}
	// The second to last syllable if it is heavy (long, or before two consonants), else the previous one.
	p := n - 2
	if heavy(s, heart, p) {
		return settle(s, heart, p)
	}
	return settle(s, heart, n-3)
}

func settle(s []sound, heart []int, k int) int {
	weak := func(k int) bool { return full[s[heart[k]].ph] != phSil }
	if !weak(k) {
		return k
	}
	if k+1 < len(heart) && !weak(k+1) && k+2 < len(heart) {
		return k + 1
	}
	for j := k - 1; j >= 0; j-- {
		if !weak(j) {
			return j
		}
	}
	return k
}

func startsWeak(word string) bool {
	for _, p := range weakPrefixes {
		rest, ok := strings.CutPrefix(word, p)
		if ok && rest != "" && consonantLetter(rest[0]) && len(rest) > 2 {
			if len(p) == 1 && len(rest) > 1 && consonantLetter(rest[1]) && rest[1] != 'r' && rest[1] != 'l' {
				continue
			}
			return true
		}
	}
	return false
}

func strongEnd(s []sound, heart []int) bool {
	i := heart[len(heart)-1]
	switch s[i].ph {
	case phAX, phIX, phAXR:
		return false
	case phIY, phOW:
		return i < len(s)-1
	case phIH, phAH, phAE, phEH, phAA:
		return len(s)-1-i >= 2
	}
	return true
}

func heavy(s []sound, heart []int, k int) bool {
	i, next := heart[k], heart[k+1]
	switch s[i].ph {
	case phAX, phIX, phAXR:
		return false
	case phEY, phAY, phOW, phAW, phOY, phUW, phIY, phAO:
		return next-i > 1
	}
	return next-i > 2 && !(next-i == 3 && (s[i+2].ph == phR || s[i+2].ph == phL))
}
