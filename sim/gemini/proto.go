package gemini

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"voicegw/internal/strict"
)

// The provider reads client messages with protobuf's JSON mapping (https://protobuf.dev/programming-guides/json/, read
// 2026-11-20): names in lowerCamelCase or as in the .proto, int64 as string or number, bytes in either base64 alphabet,
// null as absent, and any other name refused. The fields are those of the provider's own SDK types.

const maxDepth = 64

type node struct {
	kind   string                 // object, map, list, any, or the provider's name of a scalar
	fields map[string]*protoField // of an object, under both spellings
	elem   *node                  // of a list or map
}

type protoField struct {
	camel, snake string
	node         *node
}

// scalars are the provider's names; every other kind is an INT64.
var scalars = map[reflect.Kind]string{
	reflect.String: "STRING", reflect.Bool: "BOOL", reflect.Float32: "DOUBLE", reflect.Float64: "DOUBLE", reflect.Interface: "any",
}

func protoType(t reflect.Type, seen map[reflect.Type]*node) *node {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if n := seen[t]; n != nil {
		return n
	}
	switch t {
	case reflect.TypeFor[time.Time](), reflect.TypeFor[time.Duration]():
		return &node{kind: "STRING"}
	case reflect.TypeFor[[]byte]():
		return &node{kind: "BYTES"}
	}
	switch t.Kind() {
	case reflect.Struct:
		n := &node{kind: "object", fields: map[string]*protoField{}}
		seen[t] = n
		for field := range t.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "" || name == "-" {
				continue
			}
			f := &protoField{camel: name, snake: snakeCase(name), node: protoType(field.Type, seen)}
			n.fields[f.camel], n.fields[f.snake] = f, f
		}
		return n
	case reflect.Slice:
		return &node{kind: "list", elem: protoType(t.Elem(), seen)}
	case reflect.Map:
		return &node{kind: "map", elem: protoType(t.Elem(), seen)}
	}
	if kind, ok := scalars[t.Kind()]; ok {
		return &node{kind: kind}
	}
	return &node{kind: "INT64"}
}

var capital = regexp.MustCompile(`[A-Z]`)

func snakeCase(camel string) string {
	return strings.ToLower(capital.ReplaceAllString(camel, "_$0"))
}

func wellFormed(data []byte) bool {
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(data); i++ {
		switch b := data[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '{' || b == '[':
			depth++
			deepest = max(deepest, depth)
		case b == '}' || b == ']':
			depth--
		}
	}
	return deepest <= maxDepth && json.Valid(data)
}

// checker turns a message into plain maps with camelCase names and collects the provider's refusals, in its words. They
// name the entries of a map in the order of the message.
type checker struct {
	violations []string
}

// maxViolations is more than a close reason can hold.
const maxViolations = 4

func (c *checker) add(format string, args ...any) {
	if len(c.violations) < maxViolations {
		c.violations = append(c.violations, fmt.Sprintf(format, args...))
	}
}

// err returns the close for the collected violations, or nil without a violation. The provider reports them in one
// text, one per line.
func (c *checker) err() *closeError {
	if len(c.violations) == 0 {
		return nil
	}
	return invalid("%s", strings.Join(c.violations, "\n"))
}

func (c *checker) value(n *node, raw json.RawMessage, path string) any {
	if string(raw) == "null" {
		return nil
	}
	switch n.kind {
	case "object", "map":
		return c.object(n, raw, path)
	case "list":
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			// A single message in place of a list is treated as a list of one, as the provider's parser does.
			items = []json.RawMessage{raw}
		}
		out := make([]any, 0, len(items))
		for i, item := range items {
			if val := c.value(n.elem, item, fmt.Sprintf("%s[%d]", path, i)); val != nil {
				out = append(out, val)
			}
		}
		return out
	}
	if v, ok := n.scalar(raw); ok {
		return v
	}
	c.add("Invalid value at '%s' (TYPE_%s), %s", path, n.kind, compact(raw))
	return nil
}

func (c *checker) object(n *node, raw json.RawMessage, path string) any {
	members, ok := strict.Members(raw)
	switch {
	case ok:
	case raw[0] == '[':
		name := path[strings.LastIndexByte(path, '.')+1:]
		c.add("Invalid JSON payload received. Unknown name %q at '%s': Proto field is not repeating, cannot start list.", name, path)
		return nil
	default:
		c.add("Invalid value at '%s' (Message), %s", path, compact(raw))
		return nil
	}
	out := make(map[string]any, len(members))
	for i, m := range members {
		if n.kind == "map" {
			out[m.Key] = c.value(n.elem, m.Value, fmt.Sprintf("%s[%d].value", path, i))
			continue
		}
		f := n.fields[m.Key]
		switch {
		case f != nil:
			if val := c.value(f.node, m.Value, strings.TrimPrefix(path+"."+f.snake, ".")); val != nil {
				out[f.camel] = val
			}
		case path == "":
			c.add("Invalid JSON payload received. Unknown name %q: Cannot find field.", m.Key)
		default:
			c.add("Invalid JSON payload received. Unknown name %q at '%s': Cannot find field.", m.Key, path)
		}
	}
	return out
}

func (n *node) scalar(raw json.RawMessage) (any, bool) {
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return nil, false
	}
	text, isText := v.(string)
	number, isNumber := v.(json.Number)
	switch n.kind {
	case "any":
		return v, true
	case "STRING", "BYTES":
		// Enums may come as numbers; nothing in a session needs them.
		return v, isText
	case "BOOL":
		_, is := v.(bool)
		return v, is
	}
	if !isText && !isNumber {
		return nil, false
	}
	if isNumber {
		text = number.String()
	}
	if n.kind == "INT64" {
		i, err := wholeNumber(text)
		return json.Number(strconv.FormatInt(i, 10)), err == nil
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil
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

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return "?"
	}
	return b.String()
}
