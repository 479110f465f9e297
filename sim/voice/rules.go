package voice

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

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

func vowelLetter(b byte) bool { return strings.IndexByte("aeiouy", b) >= 0 }
func consonantLetter(b byte) bool {
	return b >= 'a' && b <= 'z' && !vowelLetter(b)
}
