package document

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"voicegw/internal/textutil"
)

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
	best := textutil.Nearest(name, known)
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}
