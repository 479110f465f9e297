package scenario

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	units = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen " +
		"sixteen seventeen eighteen nineteen")
	tens = strings.Fields("_ _ twenty thirty forty fifty sixty seventy eighty ninety")
)

// number returns n in words up to 99, in digits beyond.
func number(n int) string {
	switch {
	case n < 0 || n > 99:
		return strconv.Itoa(n)
	case n < 20:
		return units[n]
	case n%10 == 0:
		return tens[n/10]
	}
	return tens[n/10] + "-" + units[n%10]
}

func numberOf(word string) (float64, bool) {
	if f, err := strconv.ParseFloat(word, 64); err == nil && f == f && f < 1e15 && f > -1e15 {
		return f, true
	}
	for i, u := range units {
		if strings.EqualFold(word, u) {
			return float64(i), true
		}
	}
	return 0, false
}

var stopWords = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`a an the is are was were be am do does did i you he she it we they me my your
		our their this that these those what who when where which why how and or not no yes of in on at to for with
		from by as about into please can could would will shall should may have has had get got set let tell say said
		use used using call tool tools function always then if so any some one up out now just there here hello hi
		thanks thank answer short sentence question want need like look give given asked ask return returns value
		values string`) {
		m[w] = true
	}
	return m
}()

// words splits text at everything that is not a letter or digit, and inside camel case.
func words(text string) []string {
	var out []string
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			out = append(out, b.String())
			b.Reset()
		}
	}
	prev := ' '
	for _, r := range text {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' && r != '’':
			flush()
		case unicode.IsUpper(r) && unicode.IsLower(prev):
			flush()
			fallthrough
		default:
			b.WriteRune(r)
		}
		prev = r
	}
	flush()
	return out
}

func content(text string) map[string]bool {
	m := map[string]bool{}
	for _, w := range words(text) {
		w = strings.ToLower(w)
		w = strings.TrimSuffix(strings.ReplaceAll(w, "’", "'"), "'s")
		if utf8.RuneCountInString(w) < 2 || stopWords[w] {
			continue
		}
		if s := stem(w); !stopWords[s] {
			m[s] = true
		}
	}
	return m
}

// stem removes common endings, so that "readings" matches "reading" and "recorded" matches "record".
func stem(w string) string {
	for _, end := range []string{"ations", "ation", "ings", "ing", "ies", "ed", "es", "s", "y"} {
		if root, ok := strings.CutSuffix(w, end); ok && utf8.RuneCountInString(root) >= 3 {
			return root
		}
	}
	return w
}

func overlap(a, b map[string]bool) int {
	n := 0
	for w := range a {
		if b[w] {
			n++
		}
	}
	return n
}

func sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	r, n := utf8.DecodeRuneInString(text)
	text = string(unicode.ToUpper(r)) + text[n:]
	if !strings.ContainsAny(text[len(text)-1:], ".!?") && !strings.HasSuffix(text, "…") {
		text += "."
	}
	return text
}

// shorten cuts text between words to at most limit bytes.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	cut := text[:limit]
	if i := strings.LastIndexByte(cut, ' '); i > 0 {
		cut = cut[:i]
	}
	for !utf8.ValidString(cut) && len(cut) > 0 {
		cut = cut[:len(cut)-1]
	}
	return cut + "…"
}
