package wire

import "unicode"

// Words cuts a text before its spaces, like tokens that are whole words. Joined, the pieces are
// the text again.
func Words(text string) []string {
	var out []string
	start, word := 0, false
	for i, c := range text {
		space := unicode.IsSpace(c)
		if space && word {
			out = append(out, text[start:i])
			start = i
		}
		word = !space
	}
	return append(out, text[start:])
}

// ArgumentPieces cuts the arguments of a call at word boundaries, like tokens. Joined, the pieces
// are s again.
func ArgumentPieces(s string) []string {
	var out []string
	start := 0
	word := func(b byte) bool {
		return b >= 0x80 || b == '_' || b|0x20 >= 'a' && b|0x20 <= 'z' || b >= '0' && b <= '9'
	}
	for i := 1; i < len(s); i++ {
		if word(s[i]) != word(s[i-1]) {
			out = append(out, s[start:i])
			start = i
		}
	}
	return append(out, s[start:])
}
