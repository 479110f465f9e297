package voice

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
)

//go:embed lexicon.txt
var lexiconText string

// lexicon returns the words that are not left to the rules. It is read-only.
var lexicon = sync.OnceValue(func() map[string][]sound {
	out := make(map[string][]sound)
	for _, line := range strings.Split(lexiconText, "\n") {
		if line == "" || line[0] == ';' {
			continue
		}
		for _, entry := range strings.Split(line, " / ") {
			word, phones, ok := strings.Cut(entry, " ")
			if !ok {
				panic(fmt.Sprintf("voice: lexicon.txt: entry %q has no phones", entry))
			}
			out[word] = mustSounds(phones)
		}
	}
	return out
})

// pronounce says a word as normalize writes it. The result is empty if nothing in the word can
// be said.
func pronounce(word string) []sound {
	if s, ok := lexicon()[word]; ok {
		return s
	}
	if s := inflected(word); s != nil {
		return s
	}
	if s := compound(word); s != nil {
		return s
	}
	plain := strings.ReplaceAll(word, "'", "")
	s := bySpelling(plain)
	if !sayable(s) {
		return spelledOut(plain)
	}
	return stressed(s, plain)
}

// sayable reports whether the sounds have a vowel.
func sayable(s []sound) bool {
	for _, x := range s {
		if x.ph.isVowel() {
			return true
		}
	}
	return false
}

// spelledOut says the letters of a word that has no vowel.
func spelledOut(word string) []sound {
	var out []sound
	for _, l := range spell(word) {
		out = append(out, lexicon()[l]...)
	}
	return out
}

// known says a stem: a word of the lexicon, or one with a vowel by the rules if guess is set.
func known(stem string, guess bool) []sound {
	if s, ok := lexicon()[stem]; ok && len(stem) > 1 {
		return accented(s)
	}
	if !guess || len(stem) < 3 || !strings.ContainsAny(stem, "aeiouy") {
		return nil
	}
	if s := compound(stem); s != nil {
		return s
	}
	s := bySpelling(stem)
	if !sayable(s) {
		return nil
	}
	return stressed(s, stem)
}

// accented gives a weak word a stress, for use as a stem.
func accented(s []sound) []sound {
	for _, x := range s {
		if x.stress > 0 {
			return s
		}
	}
	out := append([]sound(nil), s...)
	for i := range out {
		if out[i].ph.isVowel() && out[i].ph != phAX {
			out[i].stress = 1
			break
		}
	}
	return out
}

// compound says a word made of two words of the lexicon: "weekday", "notebook".
func compound(word string) []sound {
	const least = 3
	for i := len(word) - least; i >= 4; i-- {
		a, ok1 := lexicon()[word[:i]]
		b, ok2 := lexicon()[word[i:]]
		if !ok1 || !ok2 || len(word)-i < 4 && i < 5 {
			continue
		}
		out := append([]sound(nil), accented(a)...)
		for _, x := range b {
			if x.stress == 1 {
				x.stress = 2
			}
			out = append(out, x)
		}
		return out
	}
	return nil
}
