package schema

import (
	"encoding/json"
	"strings"

	"voicegw/registry/document"
)

// CompileOutput compiles the schema of a tool's data; nil with problems. The rules are those of [CompileParameters],
// but defaults are not allowed, and objects below the root without properties may be maps: additionalProperties is a
// schema, or true.
func CompileOutput(raw json.RawMessage) (*Schema, []document.Problem) {
	p, problems := compile(raw, true)
	for i := range problems {
		problems[i].Message = strings.NewReplacer("The parameters are", "The output is", "leaves \"parameters\" out",
			"leaves \"output\" out", "A tool that takes no arguments", "A tool whose data is not described").Replace(problems[i].Message)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	if place := p.Root.findDefault(); place != nil {
		return nil, []document.Problem{{Path: place.String(),
			Message: "A default in the output has no effect: nothing is filled into what a tool answers. Remove it."}}
	}
	return p, nil
}

func (n *Node) findDefault() document.Pointer {
	if !n.fills {
		return nil
	}
	if n.hasDefault {
		return n.at.With("default")
	}
	for _, child := range n.filled() {
		if place := child.findDefault(); place != nil {
			return place
		}
	}
	return nil
}

// Emptied replaces null in a decoded value with an empty list or object where the schema wants a list or map, in
// place.
func (p *Schema) Emptied(v any) (filled any, changed bool) {
	l := lister{}
	filled = l.fill(p.Root, v)
	return filled, l.changed
}

// lister implements Emptied, because Go encodes nil slices and maps as null.
type lister struct{ changed bool }

func (l *lister) fill(n *Node, v any) any {
	for n.Ref != nil && len(n.Types()) == 0 {
		n = n.Ref
	}
	switch v := v.(type) {
	case nil:
		switch types := n.Types(); {
		case len(types) != 1:
		case types[0] == "array":
			l.changed = true
			return []any{}
		case types[0] == "object" && n.mapped():
			l.changed = true
			return map[string]any{}
		}
	case map[string]any:
		for _, name := range n.Names {
			if inside, has := v[name]; has {
				v[name] = l.fill(n.Props[name], inside)
			}
		}
		if n.mapped() {
			for name, inside := range v {
				v[name] = l.fill(n.extra, inside)
			}
		}
	case []any:
		for i := range v {
			if n.Items != nil {
				v[i] = l.fill(n.Items, v[i])
			}
		}
	}
	return v
}
