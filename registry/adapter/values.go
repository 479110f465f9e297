package adapter

import (
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
)

// typesOf returns a schema's types; all if it has no "type".
func typesOf(o *object) typeSet {
	v, ok := o.get("type")
	if !ok {
		return typeAny
	}
	return parseType(v)
}

func typeOf(v any) typeSet {
	switch v := v.(type) {
	case bool:
		return typeBoolean
	case json.Number:
		if rat(v).IsInt() {
			return typeInteger
		}
		return typeFraction
	case string:
		return typeString
	case []any:
		return typeArray
	case *object:
		return typeObject
	default:
		return typeNull
	}
}

// rat returns the exact value; parse has limited the digits.
func rat(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		return new(big.Rat)
	}
	return r
}

// equal compares instances like JSON Schema: numbers by value, objects without order.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && rat(a).Cmp(rat(b)) == 0
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case *object:
		b, ok := b.(*object)
		return ok && len(a.members) == len(b.members) && !slices.ContainsFunc(a.members, func(m member) bool {
			v, has := b.get(m.key)
			return !has || !equal(m.value, v)
		})
	default:
		switch b.(type) {
		case []any, *object:
			return false
		}
		return a == b
	}
}

func contains(list []any, v any) bool {
	return slices.ContainsFunc(list, func(one any) bool { return equal(one, v) })
}

// float returns the number as a float64, and whether that is exact: it has the same value, as for 2^60, or its
// shortest text is the same, as for 0.1.
func float(r *big.Rat) (float64, bool) {
	f, exact := r.Float64()
	if exact {
		return f, true
	}
	back, ok := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	return f, ok && back.Cmp(r) == 0
}
