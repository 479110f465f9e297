package prompts

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Mark is the secret mark of one conversation. The zero Mark marks and removes nothing. A Mark is immutable.
type Mark struct{ code string }

// alphabet has no vowels, so that a code is never a word; codeLength characters have 55 bits.
const (
	alphabet   = "bdfghklmnqrtvwz23456789y"
	codeLength = 12
)

// NewMark returns a random mark.
func NewMark() Mark {
	var random [codeLength]byte
	rand.Read(random[:]) // never fails: crypto/rand ends the program instead
	return fromBytes(random[:])
}

// MarkFor returns the mark of the conversation with that name. The key must have at least 16 random bytes.
func MarkFor(key []byte, name string) Mark {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(name))
	return fromBytes(h.Sum(nil)[:codeLength])
}

// Code returns the mark for MarkOf. It is a secret of the conversation.
func (m Mark) Code() string { return m.code }

// MarkOf returns the mark with this code, or a new one if the code is invalid.
func MarkOf(code string) Mark {
	if len(code) != codeLength || strings.Trim(code, alphabet) != "" {
		return NewMark()
	}
	return Mark{code}
}

func fromBytes(random []byte) Mark {
	code := make([]byte, len(random))
	for i, b := range random {
		code[i] = alphabet[int(b)%len(alphabet)]
	}
	return Mark{string(code)}
}

// Text is the mark at the beginning of a message; empty for the zero Mark.
func (m Mark) Text() string {
	if m.code == "" {
		return ""
	}
	return "[voicegw:" + m.code + "]"
}

// Notice returns the gateway's own message: the mark, a space and the text, without any mark in its quotations.
func (m Mark) Notice(text string) string {
	if m.code == "" {
		return text
	}
	return m.Text() + " " + m.Foreign(text)
}

// taken replaces the code. Its vowels keep both sides from forming the code again.
const taken = "removed"

// Foreign returns a text without the mark's code, in any case or compatibility form (NFKC), and with spaces, marks,
// punctuation or invisible characters inside.
func (m Mark) Foreign(text string) string {
	from, to := m.find(text, false)
	if from < 0 {
		return text
	}
	var out strings.Builder
	for from >= 0 {
		out.WriteString(text[:from])
		out.WriteString(taken)
		text = text[to:]
		from, to = m.find(text, false)
	}
	out.WriteString(text)
	return out.String()
}

// JSON is Foreign for every string of a JSON text, including member names. Invalid JSON is treated as text.
func (m Mark) JSON(raw json.RawMessage) json.RawMessage {
	if from, _ := m.find(string(raw), true); from < 0 {
		return raw
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil || d.More() {
		return json.RawMessage(m.Foreign(string(raw)))
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(m.clean(v)) != nil {
		return json.RawMessage(`null`) // unreachable: decoded values can be encoded
	}
	return bytes.TrimSpace(out.Bytes())
}

func (m Mark) clean(v any) any {
	switch v := v.(type) {
	case string:
		return m.Foreign(v)
	case []any:
		for i := range v {
			v[i] = m.clean(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, value := range v {
			out[m.Foreign(name)] = m.clean(value)
		}
		return out
	}
	return v
}

// find returns the position of the code; from is -1 without it. In JSON text, escapes count as their characters.
func (m Mark) find(text string, escaped bool) (from, to int) {
	if m.code == "" {
		return -1, -1
	}
	var window [codeLength]byte
	var starts [codeLength]int
	n := 0 // consecutive letters and digits that may belong to the code
	for i := 0; i < len(text); {
		r, size := next(text[i:], escaped)
		parts := string(r)
		if r >= utf8.RuneSelf {
			parts = norm.NFKC.String(parts)
		}
		for _, part := range parts {
			c := folded(part)
			switch {
			case c != 0:
				window[n%codeLength], starts[n%codeLength] = c, i
				n++
				if m.ends(&window, n) {
					return starts[n%codeLength], i + size
				}
			case unicode.IsLetter(part) || unicode.IsNumber(part):
				n = 0
			}
		}
		i += size
	}
	return -1, -1
}

// ends reports whether the latest characters, in a ring, are the code.
func (m Mark) ends(window *[codeLength]byte, n int) bool {
	if n < codeLength || window[(n-1)%codeLength] != m.code[codeLength-1] {
		return false
	}
	for i := range codeLength {
		if window[(n+i)%codeLength] != m.code[i] {
			return false
		}
	}
	return true
}

func folded(r rune) byte {
	switch {
	case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
		return byte(r)
	case r >= 'A' && r <= 'Z':
		return byte(r) + 'a' - 'A'
	}
	return 0
}

// next reads one character and returns its length in bytes. A JSON escape other than a letter counts as a space.
func next(text string, escaped bool) (rune, int) {
	if !escaped || text[0] != '\\' || len(text) < 2 {
		return utf8.DecodeRuneInString(text)
	}
	if text[1] != 'u' {
		return ' ', 2
	}
	r := hex4(text[2:])
	if r < 0 {
		return ' ', 2
	}
	if utf16.IsSurrogate(r) && len(text) >= 12 && text[6] == '\\' && text[7] == 'u' {
		if pair := utf16.DecodeRune(r, hex4(text[8:])); pair != unicode.ReplacementChar {
			return pair, 12
		}
	}
	return r, 6
}

func hex4(text string) rune {
	if len(text) < 4 {
		return -1
	}
	n, err := strconv.ParseUint(text[:4], 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}
