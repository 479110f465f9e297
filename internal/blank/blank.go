// Package blank recognises texts in which a person sees nothing.
package blank

import (
	"strings"
	"unicode"
)

// Is says whether a person sees nothing in s: it is empty, or holds only spaces, control
// characters, characters without width, fillers that are drawn as nothing, and the replacement
// character for unreadable bytes (U+FFFD).
func Is(s string) bool { return !strings.ContainsFunc(s, Seen) }

// Seen says whether a person sees something at r.
func Seen(r rune) bool {
	switch {
	case r == brailleBlank, r == unicode.ReplacementChar, unicode.IsSpace(r), unicode.IsControl(r):
		return false
	}
	// Other_Default_Ignorable_Code_Point has the Hangul fillers, which are letters.
	return !unicode.In(r, unicode.Z, unicode.Cf, unicode.Co, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point)
}

// brailleBlank is a sign without dots, U+2800.
const brailleBlank = 0x2800
