// Package shorten bounds texts that others have written, for logs, errors and records.
package shorten

import "strings"

// To returns the text if it has at most so many bytes, and otherwise its beginning, without half a character, and
// an ellipsis.
func To(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
