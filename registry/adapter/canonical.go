package adapter

// canonical reads, vets and inlines a schema: every form starts with it. It returns nil if the
// text is not a schema of an object.
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
