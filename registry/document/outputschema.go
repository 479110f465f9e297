package document

import (
	"encoding/json"
	"strings"
)

// CompileOutput compiles the schema of a tool's data; nil with problems. The rules are those of [CompileParameters],
// but defaults are not allowed, and objects below the root without properties may be maps: additionalProperties is a
// schema, or true.
func CompileOutput(raw json.RawMessage) (*Schema, []Problem) {
	p, problems := compile(raw, true)
	for i := range problems {
		problems[i].Message = strings.NewReplacer("The parameters are", "The output is", "leaves \"parameters\" out",
			"leaves \"output\" out", "A tool that takes no arguments", "A tool whose data is not described").Replace(problems[i].Message)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	if place := p.Root.findDefault(); place != nil {
		return nil, []Problem{{Path: place.String(),
			Message: "A default in the output has no effect: nothing is filled into what a tool answers. Remove it."}}
	}
	return p, nil
}

func (n *Node) findDefault() Pointer {
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
	filled = p.Root.emptied(v, &changed)
	return filled, changed
}

func (n *Node) emptied(v any, changed *bool) any {
	for n.Ref != nil && len(n.Types()) == 0 {
		n = n.Ref
	}
	switch v := v.(type) {
	case nil: // Go encodes nil slices and maps as null
		types := n.Types()
		isList := len(types) == 1 && types[0] == "array"
		isMap := len(types) == 1 && types[0] == "object" && n.mapped()
		*changed = *changed || isList || isMap
		if isList {
			return []any{}
		}
		if isMap {
			return map[string]any{}
		}
	case map[string]any:
		for name, inside := range v {
			if child := n.Props[name]; child != nil {
				v[name] = child.emptied(inside, changed)
			} else if n.mapped() {
				v[name] = n.extra.emptied(inside, changed)
			}
		}
	case []any:
		for i := range v {
			if n.Items != nil {
				v[i] = n.Items.emptied(v[i], changed)
			}
		}
	}
	return v
}
