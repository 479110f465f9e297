package registry

import (
	"net/url"
	"strconv"
	"strings"
)

// pointer is a place in a JSON document during a walk: the tokens of a JSON
// pointer (RFC 6901), not yet escaped.
type pointer []string

func (p pointer) String() string {
	var b strings.Builder
	for _, token := range p {
		b.WriteByte('/')
		b.WriteString(escapeToken(token))
	}
	return b.String()
}

// with returns p with more tokens, in its own memory.
func (p pointer) with(tokens ...string) pointer {
	return append(p[:len(p):len(p)], tokens...)
}

func (p pointer) index(i int) pointer { return p.with(strconv.Itoa(i)) }

func escapeToken(token string) string {
	if !strings.ContainsAny(token, "~/") {
		return token
	}
	return strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1")
}

// parsePointer reads a JSON pointer; ok is false if it is invalid.
func parsePointer(s string) (p pointer, ok bool) {
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

// parseFragment reads a JSON pointer as it is written in a URL's fragment, which is
// also how the schema library writes the places it reports.
func parseFragment(s string) (p pointer, ok bool) {
	plain, err := url.PathUnescape(s)
	if err != nil {
		return nil, false
	}
	return parsePointer(plain)
}

// at returns the value at p; ok is false if it is missing.
func at(v any, p pointer) (found any, ok bool) {
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
