package instance

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"voicegw/registry/jsontype"
)

// typesOf reads "type"; it returns false if "type" is missing.
func typesOf(n *node) (jsontype.Set, bool) {
	v, has := n.doc["type"]
	return jsontype.Parse(v), has
}

// canonical writes a value so that equal values are the same text: 1 and 1.0 are equal.
func canonical(v any) string {
	var b bytes.Buffer
	write(&b, v)
	return b.String()
}

// write stops once the text is too long for a call, so that lists of lists cost little.
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

// typeOf returns the type of a value.
func typeOf(v any) jsontype.Set {
	switch v := v.(type) {
	case nil:
		return jsontype.Null
	case bool:
		return jsontype.Boolean
	case json.Number:
		if r := rational(v); r != nil && r.IsInt() {
			return jsontype.Integer
		}
		return jsontype.Fraction
	case string:
		return jsontype.String
	case []any:
		return jsontype.Array
	}
	return jsontype.Object
}
