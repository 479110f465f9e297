package document

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Pointer is a place in a JSON document during a walk: the tokens of a JSON
// Pointer (RFC 6901), not yet escaped.
type Pointer []string

// String returns the pointer as RFC 6901 writes it.
func (p Pointer) String() string {
	var b strings.Builder
	for _, token := range p {
		b.WriteByte('/')
		b.WriteString(escapeToken(token))
	}
	return b.String()
}

// With returns p with more tokens, in its own memory.
func (p Pointer) With(tokens ...string) Pointer {
	return append(p[:len(p):len(p)], tokens...)
}

// Index returns p with the index of an item, in its own memory.
func (p Pointer) Index(i int) Pointer { return p.With(strconv.Itoa(i)) }

func escapeToken(token string) string {
	if !strings.ContainsAny(token, "~/") {
		return token
	}
	return strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1")
}

// ParsePointer reads a JSON pointer; ok is false if it is invalid.
func ParsePointer(s string) (p Pointer, ok bool) {
	if s == "" {
		return nil, true
	}
	if s[0] != '/' {
		return nil, false
	}
	tokens := strings.Split(s[1:], "/")
	for i, token := range tokens {
		for rest := token; ; {
			_, after, found := strings.Cut(rest, "~")
			if !found {
				break
			}
			if after == "" || (after[0] != '0' && after[0] != '1') {
				return nil, false
			}
			rest = after[1:]
		}
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	}
	return tokens, true
}

// ParseFragment reads a JSON pointer as it is written in a URL's fragment, which is
// also how the schema library writes the places it reports.
func ParseFragment(s string) (p Pointer, ok bool) {
	plain, err := url.PathUnescape(s)
	if err != nil {
		return nil, false
	}
	return ParsePointer(plain)
}

// At returns the value at p; ok is false if it is missing.
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

// Fragment writes a pointer as a URL's fragment.
func Fragment(p Pointer) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/$"
	var b strings.Builder
	for _, c := range []byte(p.String()) {
		if strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
