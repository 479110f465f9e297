package voice

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
)

//go:embed rules.txt
var rulesText string

// rule says letters between two contexts. The method is that of H. S. Elovitz,
// R. W. Johnson, A. McHugh and J. E. Shore (1976), "Automatic translation of English
// text to phonetics by means of letter-to-sound rules", NRL Report 7948; the rules are our own.
type rule struct {
	left, letters, right string
	sounds               []sound
}

// rules are all rules by the first of their letters, in the order of rules.txt.
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
		r := rule{left: left, letters: letters, right: right, sounds: mustSounds(phones)}
		out[letters[0]] = append(out[letters[0]], r)
	}
	return out
})

// bySpelling says a word of lower-case letters by the rules alone, without stress.
func bySpelling(word string) []sound {
	var out []sound
	all := rules()
	for i := 0; i < len(word); {
		n := 1
		for _, r := range all[word[i]] {
			if strings.HasPrefix(word[i:], r.letters) && matchRight(r.right, word[i+len(r.letters):]) && matchLeft(r.left, word[:i]) {
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

// matchRight reports whether text begins with the pattern.
func matchRight(pattern, text string) bool {
	for i := range len(pattern) {
		p := pattern[i]
		switch p {
		case '_':
			if text != "" {
				return false
			}
		case '#':
			if text == "" || !vowelLetter(text[0]) {
				return false
			}
			for text != "" && vowelLetter(text[0]) {
				text = text[1:]
			}
		case ':':
			for text != "" && consonantLetter(text[0]) {
				text = text[1:]
			}
		case '%':
			return ending(text)
		default:
			n := one(p, text, false)
			if n == 0 {
				return false
			}
			text = text[n:]
		}
	}
	return true
}

// matchLeft reports whether text ends with the pattern.
func matchLeft(pattern, text string) bool {
	for i := len(pattern) - 1; i >= 0; i-- {
		p := pattern[i]
		switch p {
		case '_':
			if text != "" {
				return false
			}
		case '#':
			if text == "" || !vowelLetter(text[len(text)-1]) {
				return false
			}
			for text != "" && vowelLetter(text[len(text)-1]) {
				text = text[:len(text)-1]
			}
		case ':':
			for text != "" && consonantLetter(text[len(text)-1]) {
				text = text[:len(text)-1]
			}
		default:
			n := one(p, text, true)
			if n == 0 {
				return false
			}
			text = text[:len(text)-n]
		}
	}
	return true
}

// one matches a single sign of a pattern at the beginning or the end of text and returns
// how many letters it takes, 0 for no match.
func one(p byte, text string, atEnd bool) int {
	if text == "" {
		return 0
	}
	b := text[0]
	if atEnd {
		b = text[len(text)-1]
	}
	ok := b == p
	switch p {
	case '^':
		ok = consonantLetter(b)
	case '.':
		ok = strings.IndexByte("bdvgjlmnrwz", b) >= 0
	case '+':
		ok = strings.IndexByte("eiy", b) >= 0
	case '&':
		return group(text, atEnd, "scgzxj", "ch", "sh")
	case '@':
		return group(text, atEnd, "tsrdlznj", "th", "ch", "sh")
	}
	if ok {
		return 1
	}
	return 0
}

// group matches one of the pairs of letters or one of the single letters.
func group(text string, atEnd bool, single string, pairs ...string) int {
	for _, p := range pairs {
		if atEnd && strings.HasSuffix(text, p) || !atEnd && strings.HasPrefix(text, p) {
			return len(p)
		}
	}
	b := text[0]
	if atEnd {
		b = text[len(text)-1]
	}
	if strings.IndexByte(single, b) >= 0 {
		return 1
	}
	return 0
}

// ending reports whether text is one of the endings that make the vowel before them long.
func ending(text string) bool {
	switch text {
	case "e", "es", "ed", "er", "ers", "ely", "ing", "ings":
		return true
	}
	return false
}
