package adapter

import (
	"bytes"
	"encoding/json"
	"slices"

	"voicegw/registry/document"
)

// A JSON value here is nil, bool, json.Number, string, []any or *object. A schema is a bool or an *object. For
// printing, a json.RawMessage may replace any value.

// object is a JSON object in the order of its text. Schemas share subtrees, so values in a tree must not be changed.
type object struct {
	// path is the object's JSON Pointer in the canonical text.
	path    string
	members []member
	// unknown marks an unreadable schema, which was already reported.
	unknown bool
}

type member struct {
	key   string
	value any
	path  string // of the containing schema
}

func newObject(path string, pairs ...any) *object {
	o := &object{path: path}
	for i := 0; i+1 < len(pairs); i += 2 {
		key, _ := pairs[i].(string)
		o.set(key, pairs[i+1])
	}
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

// without returns a shallow copy without the named members.
func (o *object) without(keys ...string) *object {
	c := &object{path: o.path, members: make([]member, 0, len(o.members))}
	for _, m := range o.members {
		if !slices.Contains(keys, m.key) {
			c.members = append(c.members, m)
		}
	}
	return c
}

// list returns an array member, or nil.
func (o *object) list(key string) []any {
	v, _ := o.get(key)
	l, _ := v.([]any)
	return l
}

// sub returns an object member, or an empty object.
func (o *object) sub(key string) *object {
	v, _ := o.get(key)
	if s, ok := v.(*object); ok {
		return s
	}
	return &object{path: o.path}
}

// text returns a string member, or "".
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

func (o *object) encode() json.RawMessage {
	var b bytes.Buffer
	encode(&b, o)
	return b.Bytes()
}

// encode prints without white space. Numbers keep their digits, and <, > and & aren't escaped, because models read
// the result.
func encode(b *bytes.Buffer, v any) {
	switch v := v.(type) {
	case *object:
		b.WriteByte('{')
		for i, m := range v.members {
			if i > 0 {
				b.WriteByte(',')
			}
			encode(b, m.key)
			b.WriteByte(':')
			encode(b, m.value)
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			encode(b, e)
		}
		b.WriteByte(']')
	case json.RawMessage:
		b.Write(v)
	case json.Number:
		b.WriteString(v.String())
	default: // a string, boolean or null: cannot fail
		text, _ := document.Marshal(v)
		b.Write(text)
	}
}

func pointer(path string, tokens ...string) string { return path + document.Pointer(tokens).String() }
