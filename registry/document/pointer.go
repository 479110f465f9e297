package document

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Pointer is a JSON Pointer (RFC 6901) as unescaped tokens.
type Pointer []string

// String returns the pointer in RFC 6901 syntax.
func (p Pointer) String() string {
	var b strings.Builder
	for _, token := range p {
		b.WriteByte('/')
		b.WriteString(escapeToken(token))
	}
	return b.String()
}

// With returns p with more tokens, in new memory.
func (p Pointer) With(tokens ...string) Pointer {
	return append(p[:len(p):len(p)], tokens...)
}

// Index returns p with an item's index, in new memory.
func (p Pointer) Index(i int) Pointer { return p.With(strconv.Itoa(i)) }

func escapeToken(token string) string {
	if !strings.ContainsAny(token, "~/") {
		return token
	}
	return strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1")
}

// ParsePointer parses a JSON Pointer.
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

// ParseFragment parses a JSON Pointer in a URL fragment, the form that the schema library reports.
func ParseFragment(s string) (p Pointer, ok bool) {
	plain, err := url.PathUnescape(s)
	if err != nil {
		return nil, false
	}
	return ParsePointer(plain)
}

// At returns the value at p.
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

// Fragment encodes a pointer as a URL fragment.
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
