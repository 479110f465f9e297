package gemini

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// The provider reads client messages with protobuf's JSON mapping (https://protobuf.dev/programming-guides/json/, read
// 2026-11-20): names in lowerCamelCase or as in the .proto, int64 as string or number, bytes in either base64 alphabet,
// null as absent, and any other name refused. The fields are those of the provider's own SDK types.

// maxDepth bounds how deep a client message may nest.
const maxDepth = 64

type kind uint8

const (
	kindAny kind = iota
	kindObject
	kindList
	kindMap
	kindString
	kindBytes
	kindBool
	kindInt
	kindFloat
)

// node describes one value of the schema. It never changes once built.
type node struct {
	kind kind
	// fields of an object, under both spellings.
	fields map[string]*protoField
	// elem of a list or map.
	elem *node
}

type protoField struct {
	camel, snake string
	node         *node
}

// object holds a JSON object in its original order: the provider's messages name map entries in that order.
type object []member

type member struct {
	key string
	val any
}

func protoType(t reflect.Type, seen map[reflect.Type]*node) *node {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if n := seen[t]; n != nil {
		return n
	}
	n := &node{}
	switch t.Kind() {
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			n.kind = kindString
			return n
		}
		seen[t] = n
		n.kind = kindObject
		n.fields = protoFields(t, seen)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			n.kind = kindBytes
			return n
		}
		n.kind = kindList
		n.elem = protoType(t.Elem(), seen)
	case reflect.Map:
		n.kind = kindMap
		n.elem = protoType(t.Elem(), seen)
	case reflect.String:
		n.kind = kindString
	case reflect.Bool:
		n.kind = kindBool
	case reflect.Float32, reflect.Float64:
		n.kind = kindFloat
	case reflect.Interface:
		n.kind = kindAny
	default:
		n.kind = kindInt
		if t == reflect.TypeFor[time.Duration]() {
			n.kind = kindString
		}
	}
	return n
}

func protoFields(t reflect.Type, seen map[reflect.Type]*node) map[string]*protoField {
	fields := make(map[string]*protoField, 2*t.NumField())
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		f := &protoField{camel: name, snake: snakeCase(name), node: protoType(field.Type, seen)}
		fields[f.camel] = f
		fields[f.snake] = f
	}
	return fields
}

func snakeCase(camel string) string {
	var b strings.Builder
	for _, r := range camel {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// decodeOrdered parses one JSON value and keeps the order of object members. Numbers stay json.Number.
func decodeOrdered(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v, err := decodeValue(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

func decodeValue(dec *json.Decoder, depth int) (any, error) {
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		return tok, nil
	}
	if depth >= maxDepth {
		return nil, errors.New("message nests too deep")
	}
	if delim == '[' {
		list := []any{}
		for dec.More() {
			v, err := decodeValue(dec, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := dec.Token()
		return list, err
	}
	obj := object{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, ok := key.(string)
		if !ok {
			return nil, fmt.Errorf("object key is %v", key)
		}
		v, err := decodeValue(dec, depth+1)
		if err != nil {
			return nil, err
		}
		obj = append(obj, member{name, v})
	}
	_, err = dec.Token()
	return obj, err
}

// checker turns a decoded message into plain maps with camelCase names and collects the provider's refusals, in its
// words.
type checker struct {
	violations []string
}

const maxViolations = 4

func (c *checker) add(format string, args ...any) {
	if len(c.violations) < maxViolations {
		c.violations = append(c.violations, fmt.Sprintf(format, args...))
	}
}

// err returns the close for the collected violations, or nil without a violation.
// The provider reports them in one text, one per line.
func (c *checker) err() *closeError {
	if len(c.violations) == 0 {
		return nil
	}
	return invalid("%s", strings.Join(c.violations, "\n"))
}

func (c *checker) value(n *node, v any, path string) any {
	if v == nil {
		return nil
	}
	switch n.kind {
	case kindObject:
		return c.object(n, v, path)
	case kindMap:
		return c.mapping(n, v, path)
	case kindList:
		return c.list(n, v, path)
	case kindAny:
		return plain(v)
	default:
		return c.scalar(n, v, path)
	}
}

func (c *checker) object(n *node, v any, path string) any {
	obj, ok := v.(object)
	if !ok {
		c.notObject(v, path)
		return nil
	}
	out := make(map[string]any, len(obj))
	for _, m := range obj {
		f := n.fields[m.key]
		if f == nil {
			if path == "" {
				c.add("Invalid JSON payload received. Unknown name %q: Cannot find field.", m.key)
			} else {
				c.add("Invalid JSON payload received. Unknown name %q at '%s': Cannot find field.", m.key, path)
			}
			continue
		}
		if val := c.value(f.node, m.val, join(path, f.snake)); val != nil {
			out[f.camel] = val
		}
	}
	return out
}

func (c *checker) mapping(n *node, v any, path string) any {
	obj, ok := v.(object)
	if !ok {
		c.notObject(v, path)
		return nil
	}
	out := make(map[string]any, len(obj))
	for i, m := range obj {
		out[m.key] = c.value(n.elem, m.val, fmt.Sprintf("%s[%d].value", path, i))
	}
	return out
}

func (c *checker) list(n *node, v any, path string) any {
	items, ok := v.([]any)
	if !ok {
		// A single message in place of a list is treated as a list of one, as the provider's parser does.
		items = []any{v}
	}
	out := make([]any, 0, len(items))
	for i, item := range items {
		if val := c.value(n.elem, item, fmt.Sprintf("%s[%d]", path, i)); val != nil {
			out = append(out, val)
		}
	}
	return out
}

func (c *checker) notObject(v any, path string) {
	if _, isList := v.([]any); isList {
		name := path[strings.LastIndexByte(path, '.')+1:]
		c.add("Invalid JSON payload received. Unknown name %q at '%s': Proto field is not repeating, cannot start list.", name, path)
		return
	}
	c.add("Invalid value at '%s' (Message), %s", path, quoteJSON(v))
}

// scalarTypes are the provider's names of the scalar kinds.
var scalarTypes = map[kind]string{kindString: "STRING", kindBytes: "BYTES", kindBool: "BOOL", kindInt: "INT64", kindFloat: "DOUBLE"}

func (c *checker) scalar(n *node, v any, path string) any {
	switch n.kind {
	case kindString, kindBytes:
		// Enums may come as numbers; nothing in a session needs them.
		if s, ok := v.(string); ok {
			return s
		}
	case kindBool:
		if b, ok := v.(bool); ok {
			return b
		}
	case kindInt:
		if s, ok := number(v); ok {
			if i, err := wholeNumber(s); err == nil {
				return json.Number(strconv.FormatInt(i, 10))
			}
		}
	default:
		if s, ok := number(v); ok {
			if f, err := strconv.ParseFloat(s, 64); err == nil {
				return f
			}
		}
	}
	c.add("Invalid value at '%s' (TYPE_%s), %s", path, scalarTypes[n.kind], quoteJSON(v))
	return nil
}

func number(v any) (string, bool) {
	switch v := v.(type) {
	case json.Number:
		return v.String(), true
	case string:
		return v, true
	}
	return "", false
}

// wholeNumber reads an integer, including one written as 5.0 or 1e3, which protobuf's mapping allows.
func wholeNumber(s string) (int64, error) {
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return i, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, err
	}
	const exact = 1 << 53
	if f != float64(int64(f)) || f > exact || f < -exact {
		return 0, strconv.ErrRange
	}
	return int64(f), nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func plain(v any) any {
	switch v := v.(type) {
	case object:
		out := make(map[string]any, len(v))
		for _, m := range v {
			out[m.key] = plain(m.val)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plain(v[i])
		}
		return out
	}
	return v
}

func quoteJSON(v any) string {
	b, err := json.Marshal(plain(v))
	if err != nil {
		return "?"
	}
	return string(b)
}
