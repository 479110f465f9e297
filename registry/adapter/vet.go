package adapter

import (
	"net/url"
	"strconv"
	"strings"
)

// vetted is a canonical schema without keywords that the registry accepts but no form supports.
type vetted struct {
	root *object
	// schemas has all schemas and subschemas by JSON Pointer: the possible targets of references.
	schemas map[string]any
}

func vet(root *object, p *problems) vetted {
	v := vetted{root: root, schemas: map[string]any{}}
	v.walk("", root, p)
	return v
}

// walk is as deep as the text, which parse has limited.
func (v *vetted) walk(path string, schema any, p *problems) {
	v.schemas[path] = schema
	o, ok := schema.(*object)
	if !ok {
		return
	}
	for _, m := range o.members {
		k, _ := keyword(m.key)
		if text := o.text("pattern"); m.key == "pattern" {
			checkPattern(o.path, text, p)
		}
		v.inside(pointer(o.path, m.key), m.value, k.holds, p)
	}
}

func (v *vetted) inside(path string, value any, holds holding, p *problems) {
	switch holds {
	case holdsSchema:
		v.walk(path, value, p)
	case holdsList:
		list, _ := value.([]any)
		for i, s := range list {
			v.walk(pointer(path, strconv.Itoa(i)), s, p)
		}
	case holdsMap:
		if named, ok := value.(*object); ok {
			for _, s := range named.members {
				v.walk(pointer(path, s.key), s.value, p)
			}
		}
	case holdsNone:
	}
}

func checkPattern(path, pattern string, p *problems) {
	if at := dialect(pattern); at >= 0 {
		p.add(path, "pattern", "the pattern %q has at byte %d what providers read otherwise than the registry (flags, named "+
			"groups, POSIX classes, a class that begins with ], octal escapes, \\A, \\z, \\Q…\\E, \\pN); write it without",
			clip(pattern), at)
	}
}

// dialect returns the index at which an RE2 pattern has another meaning, or none, in ECMA-262, the dialect of JSON
// Schema and the providers; -1 if there is none.
func dialect(pattern string) int {
	class := false
	for i := 0; i < len(pattern); i++ {
		rest := pattern[i+1:]
		switch c := pattern[i]; {
		case c == '\\':
			braced := strings.HasPrefix(rest, "p{") || strings.HasPrefix(rest, "P{")
			if strings.HasPrefix(rest, "x{") || !braced && strings.ContainsAny(rest[:1], "AzQECapP01234567") {
				return i
			}
			i++
		case class && c == '[' && strings.HasPrefix(rest, ":"):
			return i
		case class:
			class = c != ']'
		case c == '[':
			class = true
			if strings.HasPrefix(strings.TrimPrefix(rest, "^"), "]") {
				return i
			}
		case c == '(' && strings.HasPrefix(rest, "?") && !strings.HasPrefix(rest, "?:"):
			return i
		}
	}
	return -1
}

// refer returns the target of a reference inside the schema; false if the registry would reject the reference.
func (v *vetted) refer(ref string) (target any, ok bool) {
	fragment, err := url.PathUnescape(strings.TrimPrefix(ref, "#"))
	if err != nil {
		return nil, false
	}
	target, ok = v.schemas[fragment]
	return target, ok
}
