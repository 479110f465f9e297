package scenario

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

type template struct {
	// parts alternate between text and variable names, text first.
	parts []string
}

var variable = regexp.MustCompile(`\$\{([A-Za-z0-9_.]+)\}`)

// compile splits text at its variables. It fails on a ${ without a variable.
func compile(text string) (template, error) {
	var t template
	rest := text
	for {
		at := variable.FindStringSubmatchIndex(rest)
		plain := rest
		if at != nil {
			plain = rest[:at[0]]
		}
		if strings.Contains(plain, "${") {
			return template{}, fmt.Errorf("a ${ does not begin a variable; write ${name} with letters, digits, _ and . only")
		}
		t.parts = append(t.parts, plain)
		if at == nil {
			return t, nil
		}
		t.parts = append(t.parts, rest[at[2]:at[3]])
		rest = rest[at[1]:]
	}
}

func (t template) variables() []string {
	var names []string
	for i := 1; i < len(t.parts); i += 2 {
		names = append(names, t.parts[i])
	}
	return names
}

func (t template) empty() bool { return len(t.parts) == 0 || len(t.parts) == 1 && t.parts[0] == "" }

type vars struct {
	values map[string]string
	// result is the decoded output for ${result.path}; nil if it is not JSON.
	result any
}

var builtinVars = []string{"text", "seconds", "duration", "utterance", "history", "memory", "today", "tomorrow", "event"}

var resultVars = []string{"result", "error", "tool"}

// fill inserts the values. A variable without a value is empty: Parse rejects unknown names.
func (t template) fill(v vars) string {
	var b strings.Builder
	for i, p := range t.parts {
		switch {
		case i%2 == 0:
			b.WriteString(p)
		case strings.HasPrefix(p, "result."):
			b.WriteString(lookup(v.result, strings.Split(p, ".")[1:]))
		default:
			b.WriteString(v.values[p])
		}
	}
	return b.String()
}

func lookup(v any, path []string) string {
	for _, key := range path {
		switch x := v.(type) {
		case map[string]any:
			v = x[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(x) {
				return ""
			}
			v = x[i]
		default:
			return ""
		}
	}
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	}
	b, err := json.Marshal(v)
	if err != nil { // decoded JSON can always be encoded
		return ""
	}
	return string(b)
}

func fillArgs(a any, v vars, want schema) any {
	switch x := a.(type) {
	case template:
		s := x.fill(v)
		if len(x.variables()) > 0 {
			return want.convert(s)
		}
		return s
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, e := range x {
			out[k] = fillArgs(e, v, want.property(k))
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = fillArgs(e, v, want.element())
		}
		return out
	}
	return a
}
