package openaiwire

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
)

// Scanner walks over the members of a JSON object of plain strings, whole numbers and literals, without an allocation.
// It stops at anything else: an escape, a control character, a byte outside ASCII, nesting, or bytes after the object.
type Scanner struct {
	// Key and Value, without the quotes of a text, are slices of the data, with its capacity.
	Key, Value []byte
	IsText     bool
	// Whole means that Next has reached the end of the data.
	Whole bool

	data []byte
	long string
	at   int
}

// Scan returns a scanner of data. long is the key of a long text: its characters are not checked, and it ends at the
// next quote.
func Scan(data []byte, long string) Scanner { return Scanner{data: data, long: long} }

// Next moves to the next member. It returns false after the last one, and where it stops.
func (s *Scanner) Next() bool {
	before := byte(',')
	if s.at == 0 {
		before = '{'
	}
	switch c := s.token(); {
	case c == '}' && before == ',':
		s.Whole = skipSpace(s.data, s.at) == len(s.data)
		return false
	case c != before:
		return false
	}
	var ok bool
	if s.Key, s.at, ok = PlainText(s.data, skipSpace(s.data, s.at)); !ok || s.token() != ':' {
		return false
	}
	begin := skipSpace(s.data, s.at)
	s.IsText = begin < len(s.data) && s.data[begin] == '"'
	switch {
	case !s.IsText:
		s.Value = word(s.data[begin:])
		s.at = begin + len(s.Value)
		return isScalar(s.Value)
	case string(s.Key) == s.long:
		n := bytes.IndexByte(s.data[begin+1:], '"')
		s.at = begin + n + 2
		s.Value = s.data[begin+1 : max(s.at-1, begin+1)]
		return n >= 0
	}
	s.Value, s.at, ok = PlainText(s.data, begin)
	return ok
}

// token returns the next character that is not a space; zero at the end.
func (s *Scanner) token() byte {
	at := skipSpace(s.data, s.at)
	if at == len(s.data) {
		return 0
	}
	s.at = at + 1
	return s.data[at]
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// word returns the begin of b that may be a number or a literal.
func word(b []byte) []byte {
	n := 0
	for n < len(b) && (b[n] >= '0' && b[n] <= '9' || b[n] >= 'a' && b[n] <= 'z') {
		n++
	}
	return b[:n]
}

func isScalar(word []byte) bool {
	switch string(word) {
	case "null", "true", "false", "0":
		return true
	}
	for _, c := range word {
		if c > '9' {
			return false
		}
	}
	return len(word) > 0 && word[0] != '0'
}

// PlainText returns the string at i, without its quotes, and its end. It refuses escapes, control characters and bytes
// over 0x7E.
func PlainText(b []byte, i int) (text []byte, end int, ok bool) {
	if i >= len(b) || b[i] != '"' {
		return nil, i, false
	}
	start := i + 1
	i = start
	for i+8 <= len(b) {
		special := specialBytes(binary.LittleEndian.Uint64(b[i:]))
		if special == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(special) / 8
		return b[start:i], i + 1, b[i] == '"'
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < ' ' || c >= 0x7F {
			return b[start:i], i + 1, c == '"'
		}
	}
	return nil, i, false
}

// specialBytes marks, in the top bit of each byte of w, a quote, a backslash, a control character and a byte over 0x7E.
// Only the lowest mark is reliable: a borrow runs upwards and may set wrong marks above it.
func specialBytes(w uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	quote := w ^ ones*'"'
	slash := w ^ ones*'\\'
	found := (quote - ones) &^ quote
	found |= (slash - ones) &^ slash
	found |= (w - ones*0x20) &^ w
	found |= w | (w + ones)
	return found & tops
}

// ReadAudio reads an event of the given type whose only members are type, event_id and the audio under key in base64,
// without escapes in them. The audio shares memory with data: reading it as JSON costs more than all the rest. False
// means any other event.
func ReadAudio(data []byte, kind, key string) (id string, audio []byte, ok bool) {
	typed := false
	s := Scan(data, key)
	for s.Next() {
		switch {
		case !s.IsText:
			return "", nil, false
		case string(s.Key) == "type" && string(s.Value) == kind:
			typed = true
		case string(s.Key) == "event_id":
			id = string(s.Value)
		case string(s.Key) == key && bytes.IndexByte(s.Value, '\\') < 0:
			audio = slices.Clip(s.Value)
		default:
			return "", nil, false
		}
	}
	return id, audio, s.Whole && typed && audio != nil
}
