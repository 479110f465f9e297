package adapter

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
)

// typeSet is a set of JSON types. A number of JSON Schema is an integer or not, so
// "number" is two bits and integer is inside number as it should be.
type typeSet uint8

const (
	typeNull typeSet = 1 << iota
	typeBoolean
	typeInteger
	typeFraction // numbers that are no integers
	typeString
	typeArray
	typeObject

	typeNumber = typeInteger | typeFraction
	typeAny    = typeNull | typeBoolean | typeNumber | typeString | typeArray | typeObject
)

// typeNames is in the order in which a list of types is printed.
var typeNames = []struct {
	name string
	set  typeSet
}{
	{"object", typeObject}, {"array", typeArray}, {"string", typeString}, {"number", typeNumber},
	{"integer", typeInteger}, {"boolean", typeBoolean}, {"null", typeNull},
}

func (t typeSet) names() []string {
	var all []string
	for _, n := range typeNames {
		if t&n.set == n.set {
			all, t = append(all, n.name), t&^n.set
		}
	}
	return all
}

// known gives every name that is inside the set, integer beside number.
func (t typeSet) known() []string {
	var all []string
	for _, n := range typeNames {
		if t&n.set == n.set {
			all = append(all, n.name)
		}
	}
	return all
}

func (t typeSet) String() string { return strings.Join(t.names(), " or ") }

// value prints the set as the value of "type".
func (t typeSet) value() any {
	names := t.names()
	if len(names) == 1 {
		return names[0]
	}
	list := make([]any, len(names))
	for i, n := range names {
		list[i] = n
	}
	return list
}

// typesOf reads "type" of a schema; all when it says none.
func typesOf(o *object) typeSet {
	v, ok := o.get("type")
	if !ok {
		return typeAny
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var t typeSet
	for _, one := range list {
		for _, n := range typeNames {
			if n.name == one {
				t |= n.set
			}
		}
	}
	return t
}

// typeOf gives the type of an instance.
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

// rat gives the exact value; parse has bounded the digits.
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

// contains says whether an instance is in a list.
func contains(list []any, v any) bool {
	for _, one := range list {
		if equal(one, v) {
			return true
		}
	}
	return false
}

// count reads a size keyword (minLength, maxItems, …): 3, 3.0 and 3e0 are the same.
// False when it is beyond what a provider can count.
func count(n json.Number) (int64, bool) {
	r := rat(n)
	if !r.IsInt() || !r.Num().IsInt64() || r.Num().Int64() > 1<<53 {
		return 0, false
	}
	return r.Num().Int64(), true
}

// float gives the number as a float64, and whether that is the very number written: the
// float is its value, as of 2^60, or the shortest text of the float is, as of 0.1.
func float(r *big.Rat) (float64, bool) {
	f, exact := r.Float64()
	if exact {
		return f, true
	}
	back, ok := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	return f, ok && back.Cmp(r) == 0
}
