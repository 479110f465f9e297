package voice

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed lexicon.txt
var lexiconText string

// lexicon returns the words that the rules would mispronounce. It is read-only.
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

// pronounce returns the sounds of a word in the form that normalize writes. The result is empty
// if nothing in the word can be pronounced.
func pronounce(word string) []sound {
	if s, ok := lexicon()[word]; ok {
		return s
	}
	if stem, ok := strings.CutSuffix(word, "s"); ok && len(stem) > 1 {
		if s, ok := lexicon()[strings.TrimSuffix(stem, "'")]; ok {
			return withS(s)
		}
	}
	plain := strings.ReplaceAll(word, "'", "")
	s := bySpelling(plain)
	if !sayable(s) {
		var letters []sound
		for _, l := range spell(plain) {
			letters = append(letters, lexicon()[l]...)
		}
		return letters
	}
	return stressed(s, plain)
}

func sayable(s []sound) bool {
	for _, x := range s {
		if x.ph.isVowel() {
			return true
		}
	}
	return false
}

func withS(stem []sound) []sound {
	ending := []sound{{phS, 0}}
	switch last := stem[len(stem)-1].ph; {
	case last == phS || last == phZ || last == phSH || last == phZH || last == phCH || last == phJH:
		ending = []sound{{phIX, 0}, {phZ, 0}}
	case last.info().voiced:
		ending = []sound{{phZ, 0}}
	}
	return append(slices.Clip(stem), ending...)
}
