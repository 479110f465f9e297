package rest

import (
	_ "embed"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The font's cells: glyphs of 5 by 7 dots, one dot between letters and three between lines.
const (
	glyphWidth  = 5
	glyphHeight = 7
	letterStep  = glyphWidth + 1
	lineStep    = glyphHeight + 3
)

// glyph holds the dots of a letter, one byte per row, with the leftmost dot in bit 4.
type glyph [glyphHeight]uint8

// unknownGlyph replaces a letter that the font lacks.
var unknownGlyph = glyph{0b11111, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b11111}

// glyphOf returns the glyph of a letter; lower case letters look like capitals.
func glyphOf(r rune) glyph {
	if r == ' ' {
		return glyph{}
	}
	if g, ok := font[unicode.ToUpper(r)]; ok {
		return g
	}
	return unknownGlyph
}

// fontText draws each letter: a line with the letter, then its rows of dots.
//
//go:embed font.txt
var fontText string

var font = func() map[rune]glyph {
	letters := map[rune]glyph{}
	for lines := range slices.Chunk(strings.Fields(fontText), 1+glyphHeight) {
		var g glyph
		for row, dots := range lines[1:] {
			for _, dot := range dots {
				g[row] <<= 1
				if dot == '#' {
					g[row] |= 1
				}
			}
		}
		letter, _ := utf8.DecodeRuneInString(lines[0])
		letters[letter] = g
	}
	return letters
}()
