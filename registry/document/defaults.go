package document

// MaxDefaults limits the values filled in for a call: a short list of empty objects could need very many.
const MaxDefaults = 1000

type filler struct {
	applied  []Pointer
	overflow bool // above MaxDefaults; the value is incomplete
}

// fill fills defaults into v, at place, as n defines: in objects and array items at every depth, through $ref and
// allOf, and then in the first choice of anyOf and oneOf that accepts the value. Filled-in values are copies and are
// filled too. Existing values don't change.
func (f *filler) fill(n *Node, v any, place Pointer) {
	if !n.fills || f.overflow {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range n.Names {
			f.property(n.Props[name], v, name, place)
		}
	case []any:
		for i, item := range v {
			if n.Items != nil && n.Items.fills {
				f.fill(n.Items, item, place.Index(i))
			}
		}
	default:
		return
	}
	if n.Ref != nil {
		f.fill(n.Ref, v, place)
	}
	for _, part := range n.AllOf {
		f.fill(part, v, place)
	}
	for _, list := range [][]*Node{n.AnyOf, n.OneOf} {
		for _, choice := range list {
			if choice.compiled != nil && choice.compiled.Validate(v) == nil {
				f.fill(choice, v, place)
				break
			}
		}
	}
}

func (f *filler) property(child *Node, object map[string]any, name string, place Pointer) {
	if !child.fills {
		return
	}
	v, has := object[name]
	if !has {
		value, ok := child.ownDefault()
		if !ok {
			return
		}
		if len(f.applied) == MaxDefaults {
			f.overflow = true
			return
		}
		v = Clone(value)
		object[name] = v
		f.applied = append(f.applied, place.With(name))
	}
	switch v.(type) {
	case map[string]any, []any:
		f.fill(child, v, place.With(name))
	}
}

func (n *Node) ownDefault() (v any, ok bool) {
	n.EachInPlace(func(n *Node) {
		if n.hasDefault && !ok {
			v, ok = n.value, true
		}
	})
	return v, ok
}

// Complete fills the defaults into a decoded value, in place, and returns where. full is false above MaxDefaults.
func (p *Schema) Complete(v any) (applied []Pointer, full bool) {
	f := filler{}
	f.fill(p.Root, v, nil)
	return f.applied, !f.overflow
}
