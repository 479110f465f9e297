package voice

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// maxText bounds the spoken characters of a text. More than five minutes of
// speech in one call is a mistake of the caller.
const maxText = 5000

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

// split cuts text into written words, each with the white space before it. Joined, the words
// are the text. A text that is only white space has no words.
func split(text string) []string {
	var out []string
	for text != "" {
		end := wordEnd(text)
		if word := text[:end]; strings.TrimSpace(word) != "" {
			out = append(out, word)
		} else if len(out) > 0 {
			out[len(out)-1] += word
		}
		text = text[end:]
	}
	return out
}

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

// letter and digit accept only plain Latin, to which fold has reduced other letters.
func letter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
func digit(r rune) bool  { return r >= '0' && r <= '9' }

// marks are the typographic marks and letters that Unicode does not decompose into plain ones.
var marks = strings.NewReplacer(
	"’", "'", "‘", "'", "‐", "-", "‑", "-", "−", "-", "–", " - ", "—", " - ", "“", "\"", "”", "\"", "\u00ad", "",
	"ß", "ss", "æ", "ae", "Æ", "AE", "œ", "oe", "ø", "o", "Ø", "O", "ł", "l", "Ł", "L", "đ", "d", "þ", "th", "ð", "th",
)

// fold turns accented Latin letters and typographic marks into plain ones. It keeps
// unknown characters, which are silent.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFKD.String(marks.Replace(s)))
}
