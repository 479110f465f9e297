package registry

// maxDefaults bounds how many values may be filled in for one call: a short list of
// empty objects could require very many.
const maxDefaults = 1000

// filler applies a schema's defaults to a decoded value.
type filler struct {
	applied  []pointer
	overflow bool // there were more than maxDefaults; the value is incomplete
}

// fill completes v, which is found at place, according to n: in objects and in the items of
// arrays at every depth, through $ref and allOf, and, once the rest is filled in, in the
// first choice of anyOf and oneOf that accepts the value. Each filled-in value is a copy, and
// is completed in turn. Values that v already has are not changed.
func (f *filler) fill(n *node, v any, place pointer) {
	if !n.fills || f.overflow {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range n.names {
			f.property(n.props[name], v, name, place)
		}
	case []any:
		for i, item := range v {
			if i < len(n.prefix) {
				f.fill(n.prefix[i], item, place.index(i))
			} else if n.items != nil && n.items.fills {
				f.fill(n.items, item, place.index(i))
			}
		}
	default:
		return
	}
	if n.ref != nil {
		f.fill(n.ref, v, place)
	}
	for _, part := range n.allOf {
		f.fill(part, v, place)
	}
	for _, list := range [][]*node{n.anyOf, n.oneOf} {
		for _, choice := range list {
			if choice.compiled != nil && choice.compiled.Validate(v) == nil {
				f.fill(choice, v, place)
				break
			}
		}
	}
}

func (f *filler) property(child *node, object map[string]any, name string, place pointer) {
	if !child.fills {
		return
	}
	v, has := object[name]
	if !has {
		value, ok := child.ownDefault()
		if !ok {
			return
		}
		if len(f.applied) == maxDefaults {
			f.overflow = true
			return
		}
		v = cloneJSON(value)
		object[name] = v
		f.applied = append(f.applied, place.with(name))
	}
	switch v.(type) {
	case map[string]any, []any:
		f.fill(child, v, place.with(name))
	}
}

// ownDefault is the default of n: its own first, then the default of the schema it refers to.
func (n *node) ownDefault() (v any, ok bool) {
	if n.hasDefault {
		return n.value, true
	}
	if n.ref != nil {
		if v, ok := n.ref.ownDefault(); ok {
			return v, true
		}
	}
	for _, part := range n.allOf {
		if v, ok := part.ownDefault(); ok {
			return v, true
		}
	}
	return nil, false
}
