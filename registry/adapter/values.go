package adapter

import (
	"encoding/json"
	"math/big"
	"strconv"

	"voicegw/registry/jsontype"
)

// typesOf reads "type" of a schema; a schema without it allows all types.
func typesOf(o *object) jsontype.Set {
	v, ok := o.get("type")
	if !ok {
		return jsontype.Any
	}
	return jsontype.Parse(v)
}

// typeOf returns the type of an instance.
func typeOf(v any) jsontype.Set {
	switch v := v.(type) {
	case bool:
		return jsontype.Boolean
	case json.Number:
		if rat(v).IsInt() {
			return jsontype.Integer
		}
		return jsontype.Fraction
	case string:
		return jsontype.String
	case []any:
		return jsontype.Array
	case *object:
		return jsontype.Object
	default:
		return jsontype.Null
	}
}

// rat returns the exact value; parse has bounded the digits.
func rat(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		return new(big.Rat)
	}
	return r
}

// equal compares two instances as JSON Schema does: numbers by value, objects without order.
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

// contains reports whether a list contains an instance.
func contains(list []any, v any) bool {
	for _, one := range list {
		if equal(one, v) {
			return true
		}
	}
	return false
}

// count reads a size keyword (minLength, maxItems, …): 3, 3.0 and 3e0 are the same.
// It returns false if the size is beyond what a provider can count.
func count(n json.Number) (int64, bool) {
	r := rat(n)
	if !r.IsInt() || !r.Num().IsInt64() || r.Num().Int64() > 1<<53 {
		return 0, false
	}
	return r.Num().Int64(), true
}

// float returns the number as a float64, and whether that is exactly the written number:
// either the float has the same value, as for 2^60, or its shortest text is the same, as
// for 0.1.
func float(r *big.Rat) (float64, bool) {
	f, exact := r.Float64()
	if exact {
		return f, true
	}
	back, ok := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	return f, ok && back.Cmp(r) == 0
}
