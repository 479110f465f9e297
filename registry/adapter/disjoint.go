package adapter

import (
	"math/big"
)

// disjoint reports whether certainly no instance satisfies both schemas; false may mean unknown.
func disjoint(a, b any) bool {
	if a == false || b == false {
		return true
	}
	x, ok := a.(*object)
	if !ok {
		return false
	}
	y, ok := b.(*object)
	if !ok {
		return false
	}
	if x.has("enum") && y.has("enum") {
		for _, v := range x.list("enum") {
			if contains(y.list("enum"), v) {
				return false
			}
		}
		return true
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
		switch {
		case !inb && closed(b):
			return true
		case ina && inb && disjoint(va, vb):
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
