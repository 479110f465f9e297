package instance

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// typeSet is a set of the types of JSON. A number is an integer or a fraction, so that
// "integer" is inside "number".
type typeSet uint8

const (
	typeNull typeSet = 1 << iota
	typeBoolean
	typeInteger
	typeFraction
	typeString
	typeArray
	typeObject

	typeAll = 1<<7 - 1
)

var typeNames = []struct {
	name string
	set  typeSet
}{
	{"null", typeNull}, {"boolean", typeBoolean}, {"number", typeInteger | typeFraction}, {"integer", typeInteger},
	{"string", typeString}, {"array", typeArray}, {"object", typeObject},
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

// typesOf reads "type", and reports false if it is missing.
func typesOf(n *node) (typeSet, bool) {
	v, has := n.doc["type"]
	if !has {
		return 0, false
	}
	list, isList := v.([]any)
	if !isList {
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
	return t, true
}

// canonical writes a value so that equal ones are the same text: 1 and 1.0 are equal.
func canonical(v any) string {
	var b bytes.Buffer
	write(&b, v)
	return b.String()
}

// write stops where the text is too long for a call, so that lists of lists cost little.
func write(b *bytes.Buffer, v any) {
	if b.Len() > maxArgs {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		b.WriteByte('{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strconv.Quote(name) + ":")
			write(b, v[name])
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if b.Len() > maxArgs {
				return
			}
			if i > 0 {
				b.WriteByte(',')
			}
			write(b, item)
		}
		b.WriteByte(']')
	case json.Number:
		if r := rational(v); r != nil {
			b.WriteString(r.RatString())
		} else {
			b.WriteString(string(v))
		}
	case string:
		b.WriteString(strconv.Quote(v))
	case bool:
		b.WriteString(strconv.FormatBool(v))
	default:
		b.WriteString("null")
	}
}

// typeOf is the type of a value.
func typeOf(v any) typeSet {
	switch v := v.(type) {
	case nil:
		return typeNull
	case bool:
		return typeBoolean
	case json.Number:
		if r := rational(v); r != nil && r.IsInt() {
			return typeInteger
		}
		return typeFraction
	case string:
		return typeString
	case []any:
		return typeArray
	}
	return typeObject
}
