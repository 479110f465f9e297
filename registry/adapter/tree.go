package adapter

import (
	"bytes"
	"encoding/json"
	"math/big"
	"slices"
	"strconv"

	"voicegw/registry/document"
)

// A JSON value here is nil, bool, json.Number, string, []any or *object. A schema is a bool, an *object, or nil after a problem.

// object is a JSON object in the order of its text. Schemas share subtrees, so values in a tree must not be changed.
type object struct {
	// path is the object's JSON Pointer in the canonical text.
	path    string
	members []member
}

type member struct {
	key   string
	value any
	path  string // of the containing schema
}

func newObject(path, key string, value any) *object {
	o := &object{path: path}
	o.set(key, value)
	return o
}

func (o *object) find(key string) int {
	return slices.IndexFunc(o.members, func(m member) bool { return m.key == key })
}

func (o *object) get(key string) (any, bool) {
	if i := o.find(key); i >= 0 {
		return o.members[i].value, true
	}
	return nil, false
}

func (o *object) has(key string) bool { return o.find(key) >= 0 }

func (o *object) at(key string) string {
	if i := o.find(key); i >= 0 {
		return o.members[i].path
	}
	return o.path
}

func (o *object) set(key string, value any) { o.put(member{key: key, value: value, path: o.path}) }

func (o *object) put(m member) {
	if i := o.find(m.key); i >= 0 {
		o.members[i] = m
		return
	}
	o.members = append(o.members, m)
}

func (o *object) without(keys ...string) *object {
	c := &object{path: o.path, members: make([]member, 0, len(o.members))}
	for _, m := range o.members {
		if !slices.Contains(keys, m.key) {
			c.members = append(c.members, m)
		}
	}
	return c
}

func (o *object) list(key string) []any {
	v, _ := o.get(key)
	l, _ := v.([]any)
	return l
}

func (o *object) sub(key string) *object {
	v, _ := o.get(key)
	if s, ok := v.(*object); ok {
		return s
	}
	return &object{path: o.path}
}

func (o *object) text(key string) string {
	v, _ := o.get(key)
	s, _ := v.(string)
	return s
}

func (o *object) names(key string) []string {
	var all []string
	for _, v := range o.list(key) {
		if s, ok := v.(string); ok {
			all = append(all, s)
		}
	}
	return all
}

// MarshalJSON keeps the order of members and the digits of numbers.
func (o *object) MarshalJSON() ([]byte, error) {
	b := bytes.NewBufferString("{")
	for i, m := range o.members {
		key, _ := document.Marshal(m.key) // cannot fail
		value, err := document.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(string(key) + ":" + string(value))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func pointer(path string, tokens ...string) string { return path + document.Pointer(tokens).String() }

func (o *object) target(place document.Pointer) (v any, ok bool) {
	v = o
	for _, token := range place {
		switch in := v.(type) {
		case *object:
			v, ok = in.get(token)
		case []any:
			i, err := strconv.Atoi(token)
			if ok = err == nil && i >= 0 && i < len(in); ok {
				v = in[i]
			}
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
	}
	return v, true
}

// typesOf returns a schema's types; all if it has no "type".
func typesOf(o *object) typeSet {
	switch {
	case !o.has("type"):
		return typeAny
	case o.text("type") != "":
		return typesNamed(o.text("type"))
	}
	return typesNamed(o.names("type")...)
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
