package kb

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const maxWordBytes = 64 // bounds a word. Tokens cuts longer ones.

// Token is a word of a text.
type Token struct {
	Text string // the word in lower case, with its accents but without apostrophes
	// Also are other forms that cannot be derived from Text: "brien" of "o'brien", "email" of the first part of
	// "e-mail".
	Also []string
	// Start and End are byte offsets in the text.
	Start, End int
}

// Tokens splits a text into words of letters, digits and marks. A hyphen ends a word, an apostrophe inside it does not.
// A Chinese character is a word.
func Tokens(text string) []Token {
	var all []Token
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		if !inWord(r) {
			at += size
			continue
		}
		end := wordEnd(text, at)
		all = append(all, token(text, at, end))
		at = end
	}
	for i := 0; i+1 < len(all); i++ {
		joinHyphened(text, all[i:])
	}
	return all
}

func wordEnd(text string, at int) int {
	first, size := utf8.DecodeRuneInString(text[at:])
	at += size
	if alone(first) {
		return at
	}
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		if isApostrophe(r) && r != '`' {
			next, _ := utf8.DecodeRuneInString(text[at+size:])
			if !inWord(next) || alone(next) {
				return at
			}
		} else if !inWord(r) || alone(r) {
			return at
		}
		at += size
	}
	return at
}

func token(text string, start, end int) Token {
	word := text[start:end]
	t := Token{Start: start, End: end}
	if len(word) > maxWordBytes {
		cut := maxWordBytes
		for !utf8.RuneStart(word[cut]) {
			cut--
		}
		word = word[:cut]
	}
	mark := strings.IndexFunc(word, isApostrophe)
	if mark < 0 {
		t.Text = lower(word)
		return t
	}
	parts := strings.FieldsFunc(lower(word), isApostrophe)
	if n := len(parts); n > 1 && parts[n-1] == "s" { // a possessive
		parts = parts[:n-1]
	}
	t.Text = strings.Join(parts, "")
	if len(parts) > 1 {
		t.Also = append(t.Also, parts[len(parts)-1]) // "hotel" of "l'hotel"
	}
	return t
}

// joinHyphened adds the joined form of two or three hyphenated words to the first one.
func joinHyphened(text string, rest []Token) {
	joined := rest[0].Text
	for i := 1; i < min(3, len(rest)); i++ {
		between := text[rest[i-1].End:rest[i].Start]
		r, size := utf8.DecodeRuneInString(between)
		if !isHyphen(r) || size != len(between) {
			return
		}
		joined += rest[i].Text
		if len(joined) <= maxWordBytes {
			rest[0].Also = append(rest[0].Also, joined)
		}
	}
}

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
