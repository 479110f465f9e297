package voice

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText is how many characters of a text are spoken. More than five minutes of
// speech in one call is a mistake of the caller.
const maxText = 5000

// clip cuts text to maxText characters, at the last white space within.
func clip(text string) string {
	n := 0
	for i := range text {
		if n == maxText {
			if j := strings.LastIndexFunc(text[:i], unicode.IsSpace); j > 0 {
				return text[:j]
			}
			return text[:i]
		}
		n++
	}
	return text
}

// token is one written word: white space before it, and all up to the next
// white space.
type token struct {
	text string // as written
	// lead, core and tail are the word without white space, in lower or upper
	// case as written but in plain Latin letters: opening marks, the word, closing marks.
	lead, core, tail string
}

// split cuts text into tokens; their texts together are text, but for one that
// is nothing but white space, which has none.
func split(text string) []token {
	var out []token
	for text != "" {
		end := wordEnd(text)
		word := text[:end]
		text = text[end:]
		if strings.TrimSpace(word) == "" {
			if len(out) > 0 {
				out[len(out)-1].text += word
			}
			continue
		}
		out = append(out, newToken(word))
	}
	return out
}

// wordEnd returns the length of leading white space and the word after it.
func wordEnd(text string) int {
	inWord := false
	for i, r := range text {
		space := unicode.IsSpace(r)
		if space && inWord {
			return i
		}
		inWord = inWord || !space
	}
	return len(text)
}

func newToken(word string) token {
	t := token{text: word}
	s := fold(strings.TrimSpace(word))
	// A currency sign, a plus, an at or a hash before a word is spoken.
	i := strings.IndexFunc(s, func(r rune) bool { return alnum(r) || strings.ContainsRune("$€£¥+-@#&%=~°<>/*^|\\", r) })
	if i < 0 {
		t.tail = s
		return t
	}
	j := strings.LastIndexFunc(s, func(r rune) bool { return alnum(r) || strings.ContainsRune("$€£¥+%°=@#&/<>*^|\\", r) })
	j = max(i, j)
	_, n := utf8.DecodeRuneInString(s[j:])
	t.lead, t.core, t.tail = s[:i], s[i:j+n], s[j+n:]
	return t
}

// letter, digit and alnum know only plain Latin: fold has made what it could into that.
func letter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
func digit(r rune) bool  { return r >= '0' && r <= '9' }
func alnum(r rune) bool  { return letter(r) || digit(r) }

func allDigits(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return !digit(r) }) < 0
}

// fold brings typographic marks and Latin letters with accents to plain ones. What it does
// not know stays and is silent later.
func fold(s string) string {
	if isASCII(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case r >= 0xff01 && r <= 0xff5e: // full-width forms
			b.WriteRune(r - 0xff01 + '!')
		default:
			if p, ok := plain(r); ok {
				b.WriteString(p)
				continue
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// foldTable lists, after each plain form, the characters it stands for.
var foldTable = []struct{ to, from string }{
	{"a", "àáâãäåāăą"}, {"A", "ÀÁÂÃÄÅĀĂĄ"}, {"c", "çćč"}, {"C", "ÇĆČ"}, {"d", "ďđ"}, {"D", "ĎĐ"},
	{"e", "èéêëēėęě"}, {"E", "ÈÉÊËĒĖĘĚ"}, {"g", "ğģ"}, {"G", "ĞĢ"}, {"i", "ìíîïīįı"}, {"I", "ÌÍÎÏĪĮİ"},
	{"l", "łľļ"}, {"L", "ŁĽĻ"}, {"n", "ñńňņ"}, {"N", "ÑŃŇŅ"}, {"o", "òóôõöøōő"}, {"O", "ÒÓÔÕÖØŌŐ"},
	{"r", "ŕř"}, {"R", "ŔŘ"}, {"s", "śšşș"}, {"S", "ŚŠŞȘ"}, {"t", "ťţț"}, {"T", "ŤŢȚ"},
	{"u", "ùúûüūůűų"}, {"U", "ÙÚÛÜŪŮŰŲ"}, {"y", "ýÿ"}, {"Y", "ÝŸ"}, {"z", "źżž"}, {"Z", "ŹŻŽ"},
	{"ss", "ß"}, {"ae", "æ"}, {"Ae", "Æ"}, {"oe", "œ"}, {"Oe", "Œ"}, {"th", "þð"}, {"Th", "ÞÐ"},
	{"'", "’‘ʼ′"}, {"\"", "“”„«»″"}, {"-", "‐‑−"}, {" - ", "–—―"}, {"...", "…"}, {"", "\u200b\u200c\u200d\ufeff\u00ad"},
	{"0", "⁰₀"}, {"1", "¹₁"}, {"2", "²₂"}, {"3", "³₃"}, {"?", "？"}, {".", "。"}, {",", "、，"},
	{"1/2", "½"}, {"1/4", "¼"}, {"3/4", "¾"}, {" times ", "×"},
}

func plain(r rune) (string, bool) {
	for _, f := range foldTable {
		if strings.ContainsRune(f.from, r) {
			return f.to, true
		}
	}
	return "", false
}
