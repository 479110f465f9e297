package adapter

import (
	"slices"
	"strings"

	"voicegw/registry/document"
)

type inliner struct {
	root *object
	p    *Problems
	made int
	full bool
}

// canonical parses and inlines a schema, which every form starts with. It returns nil after a problem that leaves none.
func canonical(text []byte, p *Problems) *object {
	root := parse(text, p)
	if root == nil {
		return nil
	}
	n := &inliner{root: root, p: p}
	o, ok := n.schema(root, 0).(*object)
	if ok && typesOf(o) != typeObject {
		p.add("", "type", `the parameters must be an object; write "type": "object" at the root`)
		return nil
	}
	return o
}

func (n *inliner) schema(v any, depth int) any {
	o, ok := v.(*object)
	if !ok {
		return v
	}
	n.made++
	if !n.full && (n.made > MaxSchemas || depth > MaxDepth) {
		n.full = true
		n.p.add("", "", "with its references inlined, the schema has more than %d subschemas or %d levels; use fewer "+
			"references, or make it smaller", MaxSchemas, MaxDepth)
	}
	if n.full {
		return nil
	}
	if at := dialect(o.text("pattern")); at >= 0 {
		n.p.add(o.path, "pattern", "the pattern %q has syntax at byte %d that other dialects lack or read differently (flags, named "+
			"groups, POSIX classes, a class that begins with ], octal escapes, \\A, \\z, \\Q…\\E, \\pN); remove it",
			clip(o.text("pattern")), at)
	}
	own, parts := n.own(o, depth)
	var merged any = own
	var err error
	for _, part := range parts {
		if merged, err = merge(merged, part); err != nil {
			break
		}
	}
	if err == nil {
		merged, err = finish(merged)
	}
	if err != nil {
		n.p.add(o.path, blame(o), "no value can be valid here: %s; correct one of the two", err)
		return nil
	}
	return merged
}

func blame(o *object) string {
	for _, key := range []string{"allOf", "$ref", "required", "enum", "const"} {
		if o.has(key) {
			return key
		}
	}
	return "type"
}

func (n *inliner) own(o *object, depth int) (*object, []any) {
	own := &object{path: o.path}
	var parts []any
	for _, m := range o.members {
		k, ok := document.KeywordNamed(m.key)
		switch {
		case !ok, slices.Contains([]string{"$schema", "$comment", "$defs"}, m.key):
		case m.key == "$ref":
			parts = append(parts, n.follow(o, depth))
		case m.key == "allOf":
			for _, s := range o.list(m.key) {
				parts = append(parts, n.schema(s, depth+1))
			}
		case m.key == "const":
			parts = append(parts, newObject(o.path, "enum", []any{m.value}))
		case m.key == "enum":
			own.set(m.key, distinct(o.list(m.key)))
		case m.key == "required":
			if names := distinct(o.list(m.key)); len(names) > 0 {
				own.set(m.key, names)
			}
		default:
			own.set(m.key, subschemas(m.value, k.Holds, func(s any) any { return n.schema(s, depth+1) }))
		}
	}
	return own, parts
}

func distinct(list []any) []any {
	kept := make([]any, 0, len(list))
	texts := map[string]bool{} // fast for long lists
	for _, v := range list {
		s, text := v.(string)
		if text && !texts[s] || !text && !contains(kept, v) {
			kept = append(kept, v)
		}
		texts[s] = texts[s] || text
	}
	return kept
}

// subschemas returns a keyword's value with its subschemas replaced.
func subschemas(v any, h document.Holding, replace func(schema any) any) any {
	switch h {
	case document.HoldsSchema:
		return replace(v)
	case document.HoldsList:
		list, _ := v.([]any)
		list = slices.Clone(list)
		for i, s := range list {
			list[i] = replace(s)
		}
		return list
	case document.HoldsMap:
		if named, ok := v.(*object); ok {
			named = named.without()
			for i, m := range named.members {
				named.members[i].value = replace(m.value)
			}
			return named
		}
	}
	return v
}

// follow inlines the target of a reference. The registry rejects endless references.
func (n *inliner) follow(o *object, depth int) any {
	if place, ok := document.ParseFragment(strings.TrimPrefix(o.text("$ref"), "#")); ok {
		if target, ok := n.root.target(place); ok {
			return n.schema(target, depth+1)
		}
	}
	n.p.add(o.path, "$ref", "%q does not refer to a schema of this file; define one in $defs and refer to "+
		"#/$defs/name", clip(o.text("$ref")))
	return nil
}

// dialect returns the index at which an RE2 pattern has another meaning, or none, in ECMA-262, the dialect of JSON
// Schema and the providers; -1 without one.
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
