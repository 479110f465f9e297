package voice

import (
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"voicegw/sim/wire"
)

type spoken struct {
	word  string // a word of lower-case letters and apostrophes, or a letter's name
	chunk int    // index of the written word
	brk   breakKind
}

// normalize returns the spoken words for the written words of a text: letters as words,
// digits as whole numbers, common signs by their names.
func normalize(written []string) []spoken {
	var out []spoken
	for i, w := range written {
		if strings.Contains(w, "\n") {
			out = pause(out, minorBreak)
		}
		for _, part := range parts(fold(strings.TrimSpace(w))) {
			if brk := pauses[part]; brk != noBreak {
				out = pause(out, brk)
				continue
			}
			for _, word := range say(part) {
				out = append(out, spoken{word: word, chunk: i})
			}
		}
	}
	return out
}

func pause(said []spoken, brk breakKind) []spoken {
	if n := len(said); n > 0 {
		said[n-1].brk = max(said[n-1].brk, brk)
	}
	return said
}

var pauses = map[string]breakKind{
	".": fullStop, "?": question, "!": exclamation, ",": minorBreak, ";": minorBreak, ":": minorBreak, " - ": minorBreak,
	"-": minorBreak, "(": minorBreak, ")": minorBreak, "[": minorBreak, "]": minorBreak, "{": minorBreak, "}": minorBreak,
	"\"": minorBreak,
}

var signs = map[string]string{
	"&": "and", "+": "plus", "=": "equals", "@": "at", "%": "percent", "#": "number", "<": "less", ">": "greater",
	"~": "about", "°": "degrees", "$": "dollar", "€": "euro", "£": "pound", "¥": "yen", "/": "slash",
}

func say(part string) []string {
	switch r := rune(part[0]); {
	case digit(r):
		return number(part)
	case !letter(r):
		return strings.Fields(signs[part])
	case len(part) == 1 && part != "a" && !strings.EqualFold(part, "i"):
		return spell(part)
	case initialism(part):
		return spell(part)
	}
	if stem, ok := strings.CutSuffix(part, "s"); ok && initialism(stem) {
		words := spell(stem)
		words[len(words)-1] += "'s"
		return words
	}
	return []string{strings.ToLower(part)}
}

// parts cuts a written word into runs of letters, runs of digits, and signs, and also before a
// capital within a run of letters. A point or a hyphen between letters or digits causes no
// pause: the point is spoken, the hyphen is silent. An apostrophe belongs to its letters.
func parts(word string) []string {
	runes := []rune(word)
	var out []string
	for i := 0; i < len(runes); {
		from := i
		i++
		for i < len(runes) && together(runes[i-1], runes[i]) {
			i++
		}
		part := strings.Trim(string(runes[from:i]), "'")
		inside := i == from+1 && from > 0 && i < len(runes) && spokenRune(runes[from-1]) && spokenRune(runes[i])
		switch {
		case part == "", inside && strings.ContainsAny(part, "-,:_"):
		case inside && part == "." && digit(runes[from-1]):
			out = append(out, "point")
		case inside && part == ".":
			out = append(out, "dot")
		default:
			out = append(out, part)
		}
	}
	return out
}

// together reports whether b continues the part to which a belongs.
func together(a, b rune) bool {
	word := func(r rune) bool { return letter(r) || r == '\'' }
	switch {
	case digit(a):
		return digit(b)
	case word(a):
		small := a >= 'a' && a <= 'z'
		return word(b) && !(small && b >= 'A' && b <= 'Z')
	}
	return false
}

func spokenRune(r rune) bool { return letter(r) || digit(r) }

const letterNames = "l:a l:b l:c l:d l:e l:f l:g l:h l:i l:j l:k l:l l:m l:n l:o l:p l:q l:r l:s l:t l:u l:v l:w l:x l:y l:z"

func spell(s string) []string {
	var out []string
	for _, r := range s {
		if letter(r) {
			i := int(r|0x20-'a') * 4
			out = append(out, letterNames[i:i+3])
		}
	}
	return out
}

// initialism reports whether capitals are spoken letter by letter: there are at most three or
// they have no vowel, and they are not a word written in capitals for emphasis.
func initialism(s string) bool {
	if len(s) < 2 || s != strings.ToUpper(s) {
		return false
	}
	low := strings.ToLower(s)
	if _, known := lexicon()[low]; known {
		return false
	}
	return len(s) <= 3 || !strings.ContainsAny(low, "aeiouy")
}

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
	words := wire.Words(text)
	n := len(words) - 1
	if rest := words[n]; strings.TrimSpace(rest) == "" {
		if words = words[:n]; n > 0 {
			words[n-1] += rest
		}
	}
	return words
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

var small = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve thirteen " +
	"fourteen fifteen sixteen seventeen eighteen nineteen")

var tens = strings.Fields("zero ten twenty thirty forty fifty sixty seventy eighty ninety")

var scales = []struct {
	value uint64
	name  string
}{
	{1e15, "quadrillion"}, {1e12, "trillion"}, {1e9, "billion"}, {1e6, "million"}, {1e3, "thousand"},
}

func cardinal(n uint64) []string {
	if n < 20 {
		return []string{small[n]}
	}
	var out []string
	for _, s := range scales {
		if n >= s.value {
			out = append(append(out, cardinal(n/s.value)...), s.name)
			n %= s.value
		}
	}
	if n >= 100 {
		out = append(out, small[n/100], "hundred")
		n %= 100
	}
	if n >= 20 {
		out = append(out, tens[n/10])
		n %= 10
	}
	if n > 0 {
		out = append(out, small[n])
	}
	return out
}

// maxCardinal is the largest number of digits spoken as one number.
const maxCardinal = 15

// number speaks digits as one whole number, or digit by digit if there are many or they begin
// with a zero, as in a telephone number.
func number(s string) []string {
	if len(s) <= maxCardinal && (s[0] != '0' || s == "0") {
		if n, err := strconv.ParseUint(s, 10, 64); err == nil {
			return cardinal(n)
		}
	}
	out := make([]string, len(s))
	for i, d := range []byte(s) {
		out[i] = small[d-'0']
	}
	return out
}
