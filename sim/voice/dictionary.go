package voice

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

//go:embed lexicon.txt
var lexiconText string

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
	return slices.ContainsFunc(s, func(x sound) bool { return x.ph.isVowel() })
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

//go:embed rules.txt
var rulesText string

// rule gives the sounds of letters between two contexts. The method is that of H. S. Elovitz,
// R. W. Johnson, A. McHugh and J. E. Shore (1976), "Automatic translation of English
// text to phonetics by means of letter-to-sound rules", NRL Report 7948; the rules are our own.
type rule struct {
	letters string
	fits    *regexp.Regexp // matches the word with a [ before the letters
	sounds  []sound
}

var contexts = strings.NewReplacer(
	"#", "[aeiouy]+", ":", "[^aeiouy]*", "^", "[^aeiouy]", ".", "[bdvgjlmnrwz]", "+", "[eiy]",
	"&", "(?:[scgzxj]|ch|sh)", "@", "(?:[tsrdlznj]|th|ch|sh)", "%", "(?:e|es|ed|er|ers|ely|ings?)$",
)

var rules = sync.OnceValue(func() map[byte][]rule {
	out := make(map[byte][]rule)
	for _, line := range strings.Split(rulesText, "\n") {
		if line == "" || line[0] == ';' {
			continue
		}
		left, rest, ok1 := strings.Cut(line, "[")
		letters, rest, ok2 := strings.Cut(rest, "]")
		right, phones, _ := strings.Cut(rest, " ")
		if !ok1 || !ok2 || letters == "" {
			panic(fmt.Sprintf("voice: rules.txt: line %q is not left[letters]right PHONES", line))
		}
		left = strings.ReplaceAll(contexts.Replace(left), "_", `\A`)
		right = strings.ReplaceAll(contexts.Replace(right), "_", `\z`)
		fits := regexp.MustCompile(left + `\[` + letters + right)
		out[letters[0]] = append(out[letters[0]], rule{letters: letters, fits: fits, sounds: mustSounds(phones)})
	}
	return out
})

func bySpelling(word string) []sound {
	var out []sound
	all := rules()
	for i := 0; i < len(word); {
		n := 1
		marked := word[:i] + "[" + word[i:]
		for _, r := range all[word[i]] {
			if strings.HasPrefix(word[i:], r.letters) && r.fits.MatchString(marked) {
				out = append(out, r.sounds...)
				n = len(r.letters)
				break
			}
		}
		i += n
	}
	return out
}

func consonantLetter(b byte) bool { return b >= 'a' && b <= 'z' && strings.IndexByte("aeiouy", b) < 0 }
