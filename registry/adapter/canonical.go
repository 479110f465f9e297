package adapter

import (
	"strconv"

	"voicegw/registry/jsontype"
)

// canonical reads, vets and inlines a schema: every form starts with it. It returns nil
// if nothing of the schema is reliable.
func canonical(text []byte, p *problems) *object {
	root := parse(text, p)
	if root == nil {
		return nil
	}
	v := vet(root, p)
	if !v.sound {
		return nil
	}
	o := inline(v, p)
	if o.unknown {
		return o
	}
	if typesOf(o) != jsontype.Object {
		p.add("", "type", `the parameters are no object; write "type": "object" at the root`)
		return o
	}
	checkClosed(o, "", jsontype.Any, p)
	return o
}

// checkClosed reports where objects with unknown properties are accepted: an object must have
// additionalProperties false itself or in each of its alternatives. among are the types
// that the enclosing schemas still allow.
func checkClosed(schema any, path string, among jsontype.Set, p *problems) {
	o, ok := schema.(*object)
	if !ok {
		if schema == true && among&jsontype.Object != 0 {
			p.add(path, "", `the schema true accepts anything; give the type, and for an object "additionalProperties": false`)
		}
		return
	}
	if o.unknown {
		return
	}
	t := among & admitted(o)
	if t&jsontype.Object != 0 && !closedHere(o) && !alternativesClosed(o, t, p) {
		notClosed(o, t, p)
	}
	inside := o.sub("properties")
	for _, m := range inside.members {
		checkClosed(m.value, pointer(inside.path, m.key), jsontype.Any, p)
	}
	inside = o.sub("patternProperties")
	for _, m := range inside.members {
		checkClosed(m.value, pointer(inside.path, m.key), jsontype.Any, p)
	}
	if t&jsontype.Array != 0 {
		checkItems(o, p)
	}
}

// admitted returns the types that a schema allows, its alternatives considered.
func admitted(schema any) jsontype.Set {
	o, ok := schema.(*object)
	switch {
	case !ok && schema == false:
		return 0
	case !ok, o.unknown:
		return jsontype.Any
	}
	t := typesOf(o)
	for _, key := range []string{"anyOf", "oneOf"} {
		if list := o.list(key); len(list) > 0 {
			var any jsontype.Set
			for _, s := range list {
				any |= admitted(s)
			}
			t &= any
		}
	}
	return t
}

// closedHere is also true for an enum: it lists its objects in full.
func closedHere(o *object) bool { return closed(o) || o.has("enum") }

// alternativesClosed asks the same of anyOf or oneOf; false if there is neither.
func alternativesClosed(o *object, t jsontype.Set, p *problems) bool {
	for _, key := range []string{"anyOf", "oneOf"} {
		if list := o.list(key); len(list) > 0 {
			for i, s := range list {
				checkClosed(s, pointer(o.at(key), key, strconv.Itoa(i)), t, p)
			}
			return true
		}
	}
	return false
}

func notClosed(o *object, t jsontype.Set, p *problems) {
	switch {
	case o.has("additionalProperties"):
		p.add(o.at("additionalProperties"), "additionalProperties", "an object of a tool may accept only listed properties; set it to false and list the properties (for free keys use an array of objects with key and value)")
	case t != jsontype.Object:
		p.add(o.path, "type", `without a type anything is valid here, also objects of any shape; say the type (and for an object "additionalProperties": false)`)
	default:
		p.add(o.path, "additionalProperties", `the object accepts unknown properties; add "additionalProperties": false`)
	}
}

func checkItems(o *object, p *problems) {
	if o.has("enum") {
		return
	}
	for i, s := range o.list("prefixItems") {
		checkClosed(s, pointer(o.at("prefixItems"), "prefixItems", strconv.Itoa(i)), jsontype.Any, p)
	}
	items, ok := o.get("items")
	switch {
	case ok:
		checkClosed(items, pointer(o.at("items"), "items"), jsontype.Any, p)
	case typesOf(o) == jsontype.Any: // reported at the type
	default:
		p.add(o.path, "items", "the array accepts items of any shape; describe the items")
	}
}
