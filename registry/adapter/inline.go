package adapter

import (
	"slices"
)

// inliner converts a vetted schema to an equivalent tree without references, definitions, const and, where it merges,
// allOf.
type inliner struct {
	vetted vetted
	p      *problems
	made   int
	full   bool
}

func inline(v vetted, p *problems) *object {
	n := &inliner{vetted: v, p: p}
	o, ok := n.schema(v.root, 0).(*object)
	if !ok {
		return &object{unknown: true} // a contradiction that was already reported
	}
	return o
}

// schema returns a bool or an *object.
func (n *inliner) schema(v any, depth int) any {
	o, ok := v.(*object)
	if !ok {
		return v
	}
	n.made++
	if n.made > MaxSchemas || depth > MaxDepth {
		if !n.full {
			n.full = true
			n.p.add("", "", "with its references inlined the schema has more than %d subschemas or %d levels; refer less "+
				"often or describe less", MaxSchemas, MaxDepth)
		}
		return &object{path: o.path, unknown: true}
	}
	if n.full {
		return &object{path: o.path, unknown: true}
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
		n.p.add(o.path, blame(o), "nothing can be valid here: %s; correct one of the two", err)
		return &object{path: o.path, unknown: true}
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
		k, ok := keyword(m.key)
		switch {
		case !ok, slices.Contains([]string{"$schema", "$comment", "$defs"}, m.key):
		case m.key == "$ref":
			parts = append(parts, n.follow(o, depth))
		case m.key == "allOf":
			for _, s := range o.list(m.key) {
				parts = append(parts, n.schema(s, depth+1))
			}
		case m.key == "const":
			one := newObject(o.path, "enum", []any{m.value})
			parts = append(parts, one)
		case m.key == "enum":
			own.set(m.key, distinct(o.list(m.key)))
		case m.key == "required":
			if names := distinct(o.list(m.key)); len(names) > 0 {
				own.set(m.key, names)
			}
		default:
			own.set(m.key, n.subschemas(m.value, k.holds, depth))
		}
	}
	return own, parts
}

func distinct(list []any) []any {
	kept := make([]any, 0, len(list))
	seen := map[string]bool{}
	for _, v := range list {
		if s, ok := v.(string); ok {
			if !seen[s] {
				seen[s], kept = true, append(kept, v)
			}
			continue
		}
		if !contains(kept, v) {
			kept = append(kept, v)
		}
	}
	return kept
}

func (n *inliner) subschemas(v any, h holding, depth int) any {
	switch h {
	case holdsSchema:
		return n.schema(v, depth+1)
	case holdsList:
		list, _ := v.([]any)
		made := make([]any, len(list))
		for i, s := range list {
			made[i] = n.schema(s, depth+1)
		}
		return made
	case holdsMap:
		named, _ := v.(*object)
		if named == nil {
			return v
		}
		made := &object{path: named.path, members: make([]member, 0, len(named.members))}
		for _, m := range named.members {
			m.value = n.schema(m.value, depth+1)
			made.members = append(made.members, m)
		}
		return made
	default:
		return v
	}
}

// follow inlines the target of a reference. The registry rejects endless references.
func (n *inliner) follow(o *object, depth int) any {
	if target, ok := n.vetted.refer(o.text("$ref")); ok {
		return n.schema(target, depth+1)
	}
	n.p.add(o.path, "$ref", "%q points at no schema here; define it in $defs and refer to #/$defs/name", clip(o.text("$ref")))
	return &object{path: o.path, unknown: true}
}
