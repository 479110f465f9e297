package adapter

import (
	"encoding/json"
	"math/big"
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
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equal(a[i], b[i]) {
				return false
			}
		}
		return true
	case *object:
		b, ok := b.(*object)
		if !ok || len(a.members) != len(b.members) {
			return false
		}
		for _, m := range a.members {
			if v, ok := b.get(m.key); !ok || !equal(m.value, v) {
				return false
			}
		}
		return true
	default:
		switch b.(type) {
		case []any, *object:
			return false
		}
		return a == b
	}
}

func contains(list []any, v any) bool {
	for _, one := range list {
		if equal(one, v) {
			return true
		}
	}
	return false
}

// count returns a size keyword (minLength, maxItems, …), where 3, 3.0 and 3e0 are equal; false if providers cannot
// count it.
func count(n json.Number) (int64, bool) {
	r := rat(n)
	if !r.IsInt() || !r.Num().IsInt64() || r.Num().Int64() > 1<<53 {
		return 0, false
	}
	return r.Num().Int64(), true
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
