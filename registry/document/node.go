package document

import (
	"cmp"
	"regexp"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Node is a subschema of a [Schema], in a tree with links for $ref. It is immutable once the schema is compiled.
type Node struct {
	at Pointer
	// Doc is the schema as written; nil for true and false.
	Doc map[string]any
	yes bool // for a schema without Doc: true or false

	Props map[string]*Node
	Names []string
	// Items and Ref are the schemas of list items and of $ref; may be nil.
	Items, Ref *Node
	// AllOf, AnyOf and OneOf are the schemas in the lists of that name.
	AllOf, AnyOf, OneOf []*Node

	extra         *Node // additionalProperties; defaults are not applied in there
	value         any   // its default
	hasDefault    bool
	fills         bool // there are defaults at or below it
	nodes, height int  // with every $ref replaced

	// compiled is set for properties of the root, schemas with a default or examples, and choices of anyOf or oneOf
	// that contain a default.
	compiled *jsonschema.Schema
}

// AllNames returns the properties' names, including those of references and allOf.
func (n *Node) AllNames() (names []string) {
	n.EachInPlace(func(n *Node) { names = append(names, n.Names...) })
	return names
}

// EachInPlace visits n and its schemas of $ref and allOf.
func (n *Node) EachInPlace(visit func(*Node)) {
	visit(n)
	if n.Ref != nil {
		n.Ref.EachInPlace(visit)
	}
	for _, part := range n.AllOf {
		part.EachInPlace(visit)
	}
}

func (n *Node) examples() []any {
	list, _ := n.Doc["examples"].([]any)
	return list
}

// Refuses reports whether n certainly rejects a value; false if n isn't compiled separately.
func (n *Node) Refuses(v any) bool { return n.compiled != nil && n.compiled.Validate(v) != nil }

func (n *Node) filled() []*Node {
	all := make([]*Node, 0, len(n.Names)+len(n.AllOf)+len(n.AnyOf)+len(n.OneOf)+2)
	for _, name := range n.Names {
		all = append(all, n.Props[name])
	}
	all = slices.Concat(all, n.AllOf, n.AnyOf, n.OneOf)
	for _, one := range []*Node{n.Items, n.Ref} {
		if one != nil {
			all = append(all, one)
		}
	}
	return all
}

func (n *Node) mapped() bool {
	return len(n.Names) == 0 && n.extra != nil && (n.extra.Doc != nil || n.extra.yes)
}

// Types returns the types that "type" names.
func (n *Node) Types() []string {
	switch t := n.Doc["type"].(type) {
	case string:
		return []string{t}
	case []any:
		var types []string
		for _, v := range t {
			if s, ok := v.(string); ok {
				types = append(types, s)
			}
		}
		return types
	}
	return nil
}

// Property returns the schema of a property of n's objects, or nil.
func (n *Node) Property(name string) (found *Node) {
	n.EachInPlace(func(n *Node) { found = cmp.Or(found, n.Props[name]) })
	return found
}

// ItemsOf returns the schema of a list's items; nil if n isn't a list.
func (n *Node) ItemsOf() (items *Node) {
	n.EachInPlace(func(n *Node) { items = cmp.Or(items, n.Items) })
	return items
}

// ItemTypes returns the types of a list's items.
func (n *Node) ItemTypes() (types []string) {
	n.ItemsOf().EachInPlace(func(n *Node) { types = append(types, n.Types()...) })
	return types
}

// IsTime reports whether n is a string with a date and time, by format or by a pattern that accepts a local time.
func (n *Node) IsTime() (is bool) {
	n.EachInPlace(func(n *Node) {
		pattern, _ := n.Doc["pattern"].(string)
		p, err := regexp.Compile(pattern)
		is = is || n.Doc["format"] == "date-time" || err == nil && p.MatchString("2026-11-23T09:00:00") && !p.MatchString("-")
	})
	return is
}
