package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// template is the text of Spec.IdempotencyKey or Spec.Preview: {name} stands for an
// argument, {name.part} for a property of one, {{ and }} for the braces themselves.
type template struct {
	parts []templatePart
}

type templatePart struct {
	literal string
	path    []string // nil for a literal
}

func parseTemplate(s string) (template, error) {
	var t template
	var literal strings.Builder
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			break
		}
		literal.WriteString(s[:i])
		brace := s[i]
		s = s[i+1:]
		if s != "" && s[0] == brace {
			literal.WriteByte(brace)
			s = s[1:]
			continue
		}
		name, rest, closed := strings.Cut(s, "}")
		if brace == '}' || !closed {
			return t, errors.New("a brace stands alone; an argument is written {name}, a brace itself {{ or }}")
		}
		path := strings.Split(name, ".")
		for _, token := range path {
			if token == "" || strings.ContainsAny(token, "{ ") {
				return t, fmt.Errorf("{%s} names no argument; write {name} or {name.part}", name)
			}
		}
		t.parts = append(t.parts, templatePart{literal: literal.String()}, templatePart{path: path})
		literal.Reset()
		s = rest
	}
	t.parts = append(t.parts, templatePart{literal: literal.String() + s})
	return t, nil
}

// check says what the template names that the parameters do not have.
func (t template) check(root *node) error {
	for _, part := range t.parts {
		n := root
		for i, token := range part.path {
			if n = n.property(token); n == nil {
				return fmt.Errorf("{%s} is no argument: the parameters have no %q", strings.Join(part.path, "."), strings.Join(part.path[:i+1], "."))
			}
		}
	}
	return nil
}

// render fills in args; missing ones are null in JSON and nothing in text. As JSON,
// strings stand in quotes, so that different arguments never give one text.
func (t template) render(args any, asJSON bool) string {
	var b strings.Builder
	for _, part := range t.parts {
		if part.path == nil {
			b.WriteString(part.literal)
			continue
		}
		v, ok := at(args, part.path)
		switch {
		case asJSON:
			b.Write(appendCanonical(nil, v))
		case ok:
			b.WriteString(plainText(v))
		}
	}
	return b.String()
}

// plainText writes a value for a person: strings as they are, lists with commas.
func plainText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return string(appendNumber(nil, string(v)))
	case []any:
		items := make([]string, len(v))
		for i, item := range v {
			items[i] = plainText(item)
		}
		return strings.Join(items, ", ")
	}
	return string(appendCanonical(nil, v))
}

// property is the schema of a property of the objects that n describes, or nil.
func (n *node) property(name string) *node {
	if child := n.props[name]; child != nil {
		return child
	}
	if n.ref != nil {
		if child := n.ref.property(name); child != nil {
			return child
		}
	}
	for _, part := range n.allOf {
		if child := part.property(name); child != nil {
			return child
		}
	}
	return nil
}
