package kb

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// letters replace those that a decomposition (Unicode Standard Annex 15) does not change.
var letters = map[rune]string{
	'ß': "ss", 'ẞ': "ss", 'ſ': "s", 'ø': "o", 'ł': "l", 'đ': "d", 'ð': "d", 'þ': "th", 'æ': "ae", 'œ': "oe",
	'ħ': "h", 'ı': "i", 'ĸ': "k", 'ŋ': "n", 'ŧ': "t", 'ς': "σ", 'ƒ': "f", 'ǝ': "e",
}

// spelled are letters that people write as two if their keyboards lack them.
var spelled = map[rune]string{'ä': "ae", 'ö': "oe", 'ü': "ue", 'ø': "oe", 'å': "aa"}

// lower returns the normal form of a word for stemming: NFKC in lower case.
func lower(word string) string {
	if ascii(word) {
		return strings.ToLower(word)
	}
	return norm.NFC.String(strings.ToLower(norm.NFKC.String(word)))
}

// Fold removes accents and other marks on Latin, Greek and Cyrillic letters from the result of lower: ñ becomes n, ö
// becomes o, ß becomes ss, ł becomes l.
func Fold(word string) string {
	if ascii(word) {
		return word
	}
	var b strings.Builder
	for _, r := range norm.NFD.String(word) {
		if r >= 0x300 && r <= 0x36f { // marks of other scripts are letters
			continue
		}
		if s, ok := letters[r]; ok {
			b.WriteString(s)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// respell is Fold with ä as ae, ö as oe and so on; empty for a word without such a letter.
func respell(word string) string {
	if ascii(word) || !strings.ContainsFunc(word, func(r rune) bool { return spelled[r] != "" }) {
		return ""
	}
	var b strings.Builder
	for _, r := range word {
		if s, ok := spelled[r]; ok {
			b.WriteString(s)
		} else {
			b.WriteRune(r)
		}
	}
	return Fold(b.String())
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func isApostrophe(r rune) bool { return r == '\'' || r == '’' || r == 'ʼ' || r == '‘' || r == '`' }

func isHyphen(r rune) bool { return r == '-' || r == '‐' || r == '‑' }

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// alone reports whether a character is a word, as in scripts without spaces.
func alone(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana) }
