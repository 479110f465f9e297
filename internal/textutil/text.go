// Package textutil has helpers for text: limits, blank text and spelling suggestions for text from outside; and at a
// terminal its width, tables, typed lines, and text that must not contain control sequences.
package textutil

import (
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
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

// maxWord is the longest word, in bytes, that is compared.
const maxWord = 64

// Nearest returns the known word that word probably misspells, or "" if none is near: at most three letters differ, or a
// quarter of a long word, and no more than half of a short one. It ignores case. Of equally near words it returns the
// first.
func Nearest(word string, known []string) string {
	if len(word) > maxWord {
		return ""
	}
	best, least := "", max(min(3, len(word)/2), len(word)/4)+1
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k), least); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is the Levenshtein distance of a and b in bytes, or limit if it is not less.
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); d >= limit || -d >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return min(row[len(b)], limit)
}

// SpokenPart returns the part of a text that was spoken in the first heardMS of audioMS, without an incomplete last word.
func SpokenPart(text string, heardMS, audioMS int64) string {
	if heardMS <= 0 || audioMS <= 0 || text == "" {
		return ""
	}
	if heardMS >= audioMS {
		return text
	}
	runes := []rune(text)
	n := int(int64(len(runes)) * heardMS / audioMS)
	if unicode.IsSpace(runes[n]) {
		return strings.TrimSpace(string(runes[:n]))
	}
	for n > 0 && !unicode.IsSpace(runes[n-1]) {
		n--
	}
	return strings.TrimSpace(string(runes[:n]))
}
