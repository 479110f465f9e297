package adapter

// canonical parses, vets and inlines a schema, which every form starts with. It returns nil if the text isn't an
// object schema.
func canonical(text []byte, p *problems) *object {
	root := parse(text, p)
	if root == nil {
		return nil
	}
	o := inline(vet(root, p), p)
	if !o.unknown && typesOf(o) != typeObject {
		p.add("", "type", `the parameters are no object; write "type": "object" at the root`)
		return nil
	}
	return o
}
