package schema

import (
	"encoding/json"
	"strings"

	"voicegw/registry/document"
)

// CompileOutput checks and compiles the schema of a tool's data; nil if there are problems. The rules are those
// of [CompileParameters], except that nothing in it may have a default, and that an object below the root that
// names no properties may be a map: its additionalProperties are a schema, or true.
func CompileOutput(raw json.RawMessage) (*Schema, []document.Problem) {
	p, problems := compile(raw, true)
	for i := range problems {
		problems[i].Message = strings.NewReplacer("The parameters are", "The output is", "leaves \"parameters\" out", "leaves \"output\" out", "A tool that takes no arguments", "A tool whose data is not described").Replace(problems[i].Message)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	if place := p.Root.findDefault(); place != nil {
		return nil, []document.Problem{{Path: place.String(), Message: "A default in the output has no effect: nothing is filled into what a tool answers. Remove it."}}
	}
	return p, nil
}

// findDefault returns the place of the first default at or below n; nil if nothing there has a default.
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

// Emptied returns a decoded value in which an empty list stands where the schema wants a list and the value has
// null, and an empty object where it wants a map. It changes v in place.
func (p *Schema) Emptied(v any) (filled any, changed bool) {
	l := lister{}
	filled = l.fill(p.Root, v)
	return filled, l.changed
}

// lister puts an empty list into each place where a schema wants a list and null stands, and an empty object
// where it wants a map: a slice and a map of Go that nothing was put in are encoded as null.
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
