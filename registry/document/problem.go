// Package document parses JSON documents strictly, writes their canonical form, and reports [Problem]s at places in
// them. It also finds text that is invisible or meaningless to people ([Hidden], [Wordless]).
//
// A decoded value is nil, a bool, string, json.Number, []any or map[string]any. All functions are safe for concurrent
// use.
//
// A [Schema] is the compiled JSON Schema of a tool's arguments or data. It fills in defaults, validates values, and
// explains errors to a model. It supports a strict part of draft 2020-12 that every provider has a form for, and opens
// no files and no URLs: schemas with external references are rejected.
package document

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"voicegw/internal/textutil"
)

// Problem is an error in a document.
type Problem struct {
	// Path is a JSON Pointer (RFC 6901); empty means the whole document.
	Path    string `json:"path"`
	Message string `json:"message"`
}

// Under returns the problems of a part of a document at its place.
func Under(place Pointer, problems []Problem) []Problem {
	all := make([]Problem, len(problems))
	for i, p := range problems {
		all[i] = Problem{Path: place.String() + p.Path, Message: p.Message}
	}
	return all
}

// SortProblems sorts by path and removes duplicates.
func SortProblems(problems []Problem) []Problem {
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
	return slices.Compact(problems)
}

// String returns the path and the message on one line.
func (p Problem) String() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

// Show formats a value recognisably in about 60 characters.
func Show(v any) string {
	const most = 60
	if s, ok := v.(string); ok && utf8.RuneCountInString(s) > most {
		return string(appendString(nil, Shorten(s, most)))
	}
	return Shorten(string(AppendCanonical(nil, v)), most)
}

// Shorten keeps the first n characters, with an ellipsis if there were more.
func Shorten(s string, n int) string {
	count := 0
	for i := range s {
		if count == n {
			return s[:i] + "…"
		}
		count++
	}
	return s
}

// OneLine returns the words of a stranger's text on one line for a model: without invisible characters, and shortened to
// n characters.
func OneLine(text string, n int) string {
	return Shorten(strings.Join(strings.Fields(CleanText(text)), " "), n)
}

// Describe returns a value's type and, unless it is an object or a list, the value.
func Describe(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "the boolean " + Show(v)
	case json.Number:
		return "the number " + Show(v)
	case string:
		return "the string " + Show(v)
	case []any:
		return "an array"
	}
	return "an object"
}

// DidYouMean returns "; did you mean …?" with the most similar known name, or an empty string.
func DidYouMean(name string, known []string) string {
	if best := textutil.Nearest(name, known); best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return ""
}

// Pointer is a JSON Pointer (RFC 6901) as unescaped tokens.
type Pointer []string

// String returns the pointer in RFC 6901 syntax.
func (p Pointer) String() string {
	var b strings.Builder
	for _, token := range p {
		b.WriteByte('/')
		b.WriteString(escapes.Replace(token))
	}
	return b.String()
}

// With returns p with more tokens, in new memory.
func (p Pointer) With(tokens ...string) Pointer {
	return append(p[:len(p):len(p)], tokens...)
}

// Index returns p with an item's index, in new memory.
func (p Pointer) Index(i int) Pointer { return p.With(strconv.Itoa(i)) }

var (
	escapes   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapes = strings.NewReplacer("~0", "~", "~1", "/")
	noEscape  = regexp.MustCompile(`~([^01]|$)`)
)

// ParsePointer parses a JSON Pointer.
func ParsePointer(s string) (p Pointer, ok bool) {
	if s == "" {
		return nil, true
	}
	if s[0] != '/' || noEscape.MatchString(s) {
		return nil, false
	}
	tokens := strings.Split(s[1:], "/")
	for i, token := range tokens {
		tokens[i] = unescapes.Replace(token)
	}
	return tokens, true
}

// ParseFragment parses a JSON Pointer in a URL fragment, the form that the schema library reports.
func ParseFragment(s string) (p Pointer, ok bool) {
	plain, err := url.PathUnescape(s)
	if err != nil {
		return nil, false
	}
	return ParsePointer(plain)
}

// At returns the value at p.
func At(v any, p Pointer) (found any, ok bool) {
	for _, token := range p {
		switch in := v.(type) {
		case map[string]any:
			if v, ok = in[token]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(in) || strconv.Itoa(i) != token {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return v, true
}

func (p Pointer) fragment() string { return (&url.URL{Fragment: p.String()}).EscapedFragment() }
