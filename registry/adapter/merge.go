package adapter

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"

	"voicegw/registry/document"
)

func mergeFinish(a, b any) (any, error) {
	merged, err := merge(a, b)
	if err != nil {
		return nil, err
	}
	return finish(merged)
}

// merge returns a schema (bool or *object) that accepts exactly what both accept. The inexpressible rest stays in its
// allOf. An error explains why nothing is accepted. a's annotations win.
func merge(a, b any) (any, error) {
	switch {
	case a == false || b == false:
		return nil, fmt.Errorf("the schema false accepts nothing")
	case a == nil || b == nil:
		return nil, nil //nolint:nilnil // reported already
	}
	x, ok := a.(*object)
	if !ok {
		return b, nil // a is true
	}
	y, ok := b.(*object)
	if !ok {
		return a, nil
	}
	out := &object{path: x.path, members: slices.Clone(x.members)}
	for _, m := range y.members {
		switch {
		case m.key == "properties" || m.key == "additionalProperties": // belong together
		case !x.has(m.key):
			out.put(m)
		default:
			if err := out.combine(x, y, m.key); err != nil {
				return nil, err
			}
		}
	}
	out.combineProperties(x, y)
	return out, nil
}

func (o *object) combine(a, b *object, key string) error {
	va, _ := a.get(key)
	vb, _ := b.get(key)
	switch key {
	case "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly":
	case "type":
		both := typesOf(a) & typesOf(b)
		if both == 0 {
			return fmt.Errorf("%s and %s exclude each other", typesOf(a), typesOf(b))
		}
		o.replace(key, both.Value())
	case "enum":
		common := slices.DeleteFunc(slices.Clone(a.list(key)), func(v any) bool { return !contains(b.list(key), v) })
		if len(common) == 0 {
			return fmt.Errorf("the enums have no value in common")
		}
		o.replace(key, common)
	case "minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties":
		o.pick(a, b, key, 1)
	case "maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties":
		o.pick(a, b, key, -1)
	case "uniqueItems":
		o.replace(key, va == true || vb == true)
	case "required":
		o.replace(key, distinct(slices.Concat(a.list(key), b.list(key))))
	case "dependentRequired":
		o.replace(key, joinDependents(a.sub(key), b.sub(key)))
	case "allOf":
		o.replace(key, slices.Concat(a.list(key), b.list(key)))
	case "items":
		v, err := mergeFinish(va, vb)
		if err != nil {
			v = false // only the empty array is left
		}
		o.replace(key, v)
	default:
		if !equal(va, vb) {
			o.apart(b, key)
		}
	}
	return nil
}

func (o *object) replace(key string, value any) {
	o.put(member{key: key, value: value, path: o.at(key)})
}

func (o *object) apart(b *object, keys ...string) {
	part := &object{path: b.path}
	for _, m := range b.members {
		if slices.Contains(keys, m.key) {
			part.members = append(part.members, m)
		}
	}
	o.put(member{key: "allOf", value: append(slices.Clone(o.list("allOf")), part), path: b.at(keys[0])})
}

// pick keeps the larger bound (sign 1) or the smaller (-1).
func (o *object) pick(a, b *object, key string, sign int) {
	if bound(b, key).Cmp(bound(a, key)) == sign {
		o.put(b.members[b.find(key)])
	}
}

func bound(o *object, key string) *big.Rat {
	v, _ := o.get(key)
	n, _ := v.(json.Number)
	return rat(n)
}

func joinDependents(a, b *object) *object {
	out := &object{path: a.path, members: slices.Clone(a.members)}
	for _, m := range b.members {
		out.put(member{key: m.key, value: distinct(slices.Concat(a.list(m.key), b.list(m.key))), path: m.path})
	}
	return out
}

func (o *object) combineProperties(a, b *object) {
	pa, pb := a.sub("properties"), b.sub("properties")
	va, _ := a.get("additionalProperties")
	vb, _ := b.get("additionalProperties")
	switch {
	case a.has("properties") == b.has("properties") && a.has("additionalProperties") == b.has("additionalProperties") &&
		equal(pa, pb) && equal(va, vb):
		return
	case (a.has("properties") || a.has("additionalProperties")) && (!simpleObject(a) || !simpleObject(b)):
		o.apart(b, "properties", "additionalProperties")
		return
	}
	for _, key := range []string{"properties", "additionalProperties"} {
		if i := b.find(key); i >= 0 && !a.has(key) {
			o.put(b.members[i])
		}
	}
	if o.has("properties") {
		o.replace("properties", mergeProperties(pa, pb, closed(a), closed(b)))
	}
	if closed(a) || closed(b) {
		o.replace("additionalProperties", false)
	}
}

// mergeProperties returns the properties of two objects that must both hold; a closed object allows no others.
func mergeProperties(pa, pb *object, closedA, closedB bool) *object {
	out := pa.without()
	for _, m := range pb.members {
		if !pa.has(m.key) {
			out.members = append(out.members, m)
		}
	}
	for i, m := range out.members {
		va, inA := pa.get(m.key)
		vb, inB := pb.get(m.key)
		switch {
		case inA && inB:
			v, err := mergeFinish(va, vb)
			if err != nil {
				v = false
			}
			out.members[i].value = v
		case inA && closedB, inB && closedA:
			out.members[i].value = false
		}
	}
	return out
}

func simpleObject(o *object) bool {
	v, ok := o.get("additionalProperties")
	_, isBool := v.(bool)
	return !ok || isBool
}

func closed(o *object) bool {
	v, _ := o.get("additionalProperties")
	return v == false
}

// finish removes the ineffective parts of a merged schema: enum values and constraints of other types, and properties
// that are false. An error explains why nothing is accepted.
func finish(v any) (any, error) {
	o, ok := v.(*object)
	if !ok {
		return v, nil
	}
	o, err := narrow(o)
	if err != nil {
		return nil, err
	}
	if !closed(o) {
		return o, nil
	}
	kept := o.sub("properties").without()
	kept.members = slices.DeleteFunc(kept.members, func(m member) bool { return m.value == false })
	if len(kept.members) < len(o.sub("properties").members) {
		o.replace("properties", kept)
	}
	if typesOf(o) == typeObject {
		for _, name := range o.names("required") {
			if !kept.has(name) {
				return nil, fmt.Errorf("%q is required, but the object does not allow it", clip(name))
			}
		}
	}
	return o, nil
}

func narrow(o *object) (*object, error) {
	t := typesOf(o)
	out := o.without()
	if o.has("enum") {
		values := slices.DeleteFunc(slices.Clone(o.list("enum")), func(v any) bool { return t&typeOf(v) == 0 })
		if len(values) == 0 {
			return nil, fmt.Errorf("no value of the enum is of type %s", t)
		}
		var have typeSet
		for _, v := range values {
			have |= typeOf(v)
		}
		if have&typeFraction != 0 {
			have |= typeInteger // JSON Schema has no type for only fractions
		}
		t &= have
		out.replace("enum", values)
	}
	if t != typeAny {
		out.replace("type", t.Value())
	}
	out.members = slices.DeleteFunc(out.members, func(m member) bool {
		k, _ := document.KeywordNamed(m.key)
		return len(k.Types) > 0 && typesNamed(k.Types...)&t == 0
	})
	return out, nil
}

// disjoint reports whether certainly no instance satisfies both schemas; false may mean unknown.
func disjoint(a, b any) bool {
	if a == false || b == false {
		return true
	}
	x, isX := a.(*object)
	y, isY := b.(*object)
	switch {
	case !isX || !isY:
		return false
	case x.has("enum") && y.has("enum"):
		return !slices.ContainsFunc(x.list("enum"), func(v any) bool { return contains(y.list("enum"), v) })
	}
	common := typesOf(x) & typesOf(y)
	for _, n := range namedTypes {
		if common&n.Set != 0 && !disjointAs(x, y, n.Set) {
			return false
		}
	}
	return true
}

func disjointAs(a, b *object, t typeSet) bool {
	switch t {
	case typeObject:
		return requiresApart(a, b) || requiresApart(b, a)
	case typeNumber, typeInteger:
		return below(a, b) || below(b, a)
	case typeString:
		return shorter(a, b, "maxLength", "minLength") || shorter(b, a, "maxLength", "minLength")
	case typeArray:
		return shorter(a, b, "maxItems", "minItems") || shorter(b, a, "maxItems", "minItems")
	default:
		return false
	}
}

func requiresApart(a, b *object) bool {
	pa, pb := a.sub("properties"), b.sub("properties")
	for _, name := range a.names("required") {
		va, ina := pa.get(name)
		vb, inb := pb.get(name)
		if !inb && closed(b) || ina && inb && disjoint(va, vb) {
			return true
		}
	}
	return false
}

func below(a, b *object) bool {
	high, highOpen := tightest(a, "maximum", "exclusiveMaximum", -1)
	low, lowOpen := tightest(b, "minimum", "exclusiveMinimum", 1)
	if high == nil || low == nil {
		return false
	}
	c := high.Cmp(low)
	return c < 0 || c == 0 && (highOpen || lowOpen)
}

// tightest returns the stricter of an inclusive and an exclusive bound, and whether it is exclusive; nil without a
// bound. sign is 1 for lower bounds, -1 for upper.
func tightest(o *object, inclusive, exclusive string, sign int) (*big.Rat, bool) {
	switch {
	case !o.has(inclusive) && !o.has(exclusive):
		return nil, false
	case !o.has(exclusive):
		return bound(o, inclusive), false
	case !o.has(inclusive):
		return bound(o, exclusive), true
	}
	in, ex := bound(o, inclusive), bound(o, exclusive)
	if in.Cmp(ex) == sign {
		return in, false
	}
	return ex, true
}

func shorter(a, b *object, most, least string) bool {
	return a.has(most) && b.has(least) && bound(a, most).Cmp(bound(b, least)) < 0
}
