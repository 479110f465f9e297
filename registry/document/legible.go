package document

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Hidden finds the first character that must not be in text for a model, and describes it with its byte offset:
// control characters, and invisible or misleading ones (zero-width characters, direction overrides, tags). The result
// is empty if the text has none. Line feeds, tabs, joiners and direction marks are allowed, because some scripts and
// emojis need them.
func Hidden(text string) (what string, at int) {
	before := ' '
	for i, r := range text {
		if hidden(r, before) {
			return fmt.Sprintf("%U%s", r, nameOf(r)), i
		}
		before = r
	}
	return "", 0
}

func hidden(r, before rune) bool {
	switch {
	case r >= ' ' && r < 0x7f, r == '\n', r == '\t':
		return false
	case r == zeroWidthNonJoiner || r == zeroWidthJoiner: // they join letters of scripts, and emojis
		return before < 0x300
	case r == 0x200e || r == 0x200f || r == 0x61c: // marks move no letters, only neutral characters
		return false
	case unicode.Is(unicode.Cf, r): // except number signs
		return !unicode.In(r, unicode.Arabic, unicode.Syriac) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Noncharacter_Code_Point, r) || unicode.In(r, unicode.Zl, unicode.Zp) ||
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) && r != 0x34f
}

const (
	zeroWidthNonJoiner = 0x200c
	zeroWidthJoiner    = 0x200d
)

func nameOf(r rune) string {
	switch {
	case unicode.IsControl(r):
		return " (a control character)"
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return " (an override of the direction of writing)"
	case r >= 0xe0000:
		return " (an invisible tag)"
	default:
		return " (invisible)"
	}
}

// Legible reports every string in v, including keys, with a hidden character.
func Legible(v any, place Pointer) []Problem {
	var problems []Problem
	look := func(at Pointer, text string) {
		if what, _ := Hidden(text); what != "" {
			problems = append(problems, Problem{Path: at.String(),
				Message: fmt.Sprintf("This has the character %s, which people cannot see but models read; remove it.", what)})
		}
	}
	var walk func(v any, at Pointer)
	walk = func(v any, at Pointer) {
		switch v := v.(type) {
		case string:
			look(at, v)
		case []any:
			for i, item := range v {
				walk(item, at.Index(i))
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				look(at.With(key), key)
				walk(v[key], at.With(key))
			}
		}
	}
	walk(v, place)
	return problems
}

// CleanText returns text without hidden characters.
func CleanText(text string) string {
	if what, _ := Hidden(text); what == "" {
		return text
	}
	var b strings.Builder
	before := ' '
	for _, r := range text {
		if !hidden(r, before) {
			b.WriteRune(r)
			before = r
		}
	}
	return b.String()
}

// Clean returns decoded JSON without hidden characters in its texts and keys, for data from elsewhere.
func Clean(v any) any {
	switch v := v.(type) {
	case string:
		return CleanText(v)
	case []any:
		for i := range v {
			v[i] = Clean(v[i])
		}
	case map[string]any:
		for key, value := range v {
			clean := CleanText(key)
			if clean != key {
				delete(v, key)
			}
			v[clean] = Clean(value)
		}
	}
	return v
}

// jsonEscape matches an escape of JSON. Its groups are the first half of a character, the second half after it, and a second
// half alone.
var jsonEscape = regexp.MustCompile(`(?s)\\u(?i:(d[89ab][0-9a-f]{2})(\\ud[c-f][0-9a-f]{2})?|(d[c-f][0-9a-f]{2}))|\\.`)

// LoneSurrogate returns the index of a \u escape that is half of a character, which decoders silently replace, or -1.
// data is JSON.
func LoneSurrogate(data []byte) int {
	for _, at := range jsonEscape.FindAllSubmatchIndex(data, -1) {
		high, low, pair := at[2] >= 0, at[6] >= 0, at[4] >= 0
		if low || high && !pair {
			return at[0]
		}
	}
	return -1
}

var (
	markupComment = regexp.MustCompile(`(?s)<!--.*?(-->|$)`)
	markupTag     = regexp.MustCompile(`</?[A-Za-z][^<>]*>`)
	markupEntity  = regexp.MustCompile(`&(#[0-9]+|#[xX][0-9A-Fa-f]+|[A-Za-z][A-Za-z0-9]*);`)
	markupImage   = regexp.MustCompile(`!\[[^\]]*\](\([^)]*\)|\[[^\]]*\])?`)
	markupTarget  = regexp.MustCompile(`\]\([^)]*\)|\]\[[^\]]*\]|<[a-z]+:[^>]*>|https?://\S+`)
)

// Wordless reports whether text has no word outside its Markdown and HTML markup, including images and link targets.
func Wordless(text string) bool {
	for _, form := range []*regexp.Regexp{markupComment, markupImage, markupTarget, markupTag, markupEntity} {
		text = form.ReplaceAllString(text, " ")
	}
	return !strings.ContainsFunc(text, unicode.IsLetter)
}
