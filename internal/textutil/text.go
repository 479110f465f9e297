// Package textutil has helpers for text: limits, blank text and spelling suggestions for text from outside; and at a
// terminal its width, tables, typed lines, and text that must not contain control sequences.
package textutil

import (
	"golang.org/x/term"
	"os"
	"strings"
	"unicode"
)

// Shorten returns text if it has at most limit bytes. Otherwise it returns the beginning, cut at a character, and an
// ellipsis.
func Shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

// IsBlank reports whether s has no visible character: only spaces, control characters, zero-width characters, invisible
// fillers, and U+FFFD, which replaces unreadable bytes.
func IsBlank(s string) bool { return !strings.ContainsFunc(s, IsVisible) }

// IsVisible reports whether a person can see r.
func IsVisible(r rune) bool {
	switch {
	case r == brailleBlank, r == unicode.ReplacementChar, unicode.IsSpace(r), unicode.IsControl(r):
		return false
	}
	// Other_Default_Ignorable_Code_Point has the Hangul fillers, which are letters.
	return !unicode.In(r, unicode.Z, unicode.Cf, unicode.Co, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point)
}

// brailleBlank is the Braille pattern without dots.
const brailleBlank = 0x2800

// Width says whether file is a terminal, and how many columns it has.
func Width(file any) (columns int, ok bool) {
	f, isFile := file.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns == 0 { // the size is unknown, as in many containers
		columns = 80
	}
	return columns, true
}
