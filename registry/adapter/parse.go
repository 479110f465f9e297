package adapter

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// Limits of a canonical schema. A tool has a few kilobytes; a schema at a limit is a mistake or an attack.
const (
	MaxBytes = 64 << 10 // of the schema's text
	MaxDepth = 64       // nesting of objects and arrays, in the text and after inlining
	// MaxSchemas limits the schemas and subschemas of a form: references that each refer twice double the form at
	// every level.
	MaxSchemas = 4096
	// MaxAlternatives limits the anyOf of Gemini's form for an enum of numbers.
	MaxAlternatives = 16
	// maxDigits limits a number's text, and maxExponent the digits of its exponent: exact arithmetic on 1e999999999
	// would exhaust memory.
	maxDigits, maxExponent = 64, 3
)

var errTooDeep = errors.New("it is nested too deeply; flatten it")

// parse parses a schema's text into a tree that keeps order and digits. If it cannot be a schema, it adds a problem
// and returns nil.
func parse(text []byte, p *Problems) *object {
	r := reader{dec: json.NewDecoder(bytes.NewReader(text)), problems: p}
	r.dec.UseNumber()
	before := len(*p)
	v, err := r.value("", 0)
	o, ok := v.(*object)
	switch {
	case len(text) > MaxBytes:
		p.add("", "", "the schema has %d bytes, more than %d; describe fewer parameters or split the tool", len(text), MaxBytes)
	case err != nil:
		p.add("", "", "the schema is not JSON: %s (at byte %d)", err, r.dec.InputOffset())
	case !ok:
		p.add("", "", `the schema must be a JSON object: {"type":"object","properties":{…},"additionalProperties":false}`)
	}
	if len(*p) > before {
		return nil
	}
	return o
}

// reader builds the tree from tokens, because maps would lose the order of members.
type reader struct {
	dec      *json.Decoder
	problems *Problems
}

func (r *reader) value(path string, depth int) (any, error) {
	t, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		if depth >= MaxDepth {
			return nil, errTooDeep
		}
		if t == '{' {
			return r.object(path, depth)
		}
		return r.array(path, depth)
	case json.Number:
		if !modest(t.String()) {
			r.problems.add(path, "", "the number %s has too many digits; write one that a float64 can hold", clip(t.String()))
		}
	}
	return t, nil
}

func (r *reader) object(path string, depth int) (any, error) {
	o := &object{path: path}
	for r.dec.More() {
		t, err := r.dec.Token()
		if err != nil {
			return nil, err
		}
		key, _ := t.(string) // the decoder rejects other keys
		v, err := r.value(pointer(path, key), depth+1)
		if err != nil {
			return nil, err
		}
		o.set(key, v)
	}
	_, err := r.dec.Token()
	return o, err
}

func (r *reader) array(path string, depth int) (any, error) {
	list := []any{}
	for r.dec.More() {
		v, err := r.value(pointer(path, strconv.Itoa(len(list))), depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := r.dec.Token()
	return list, err
}

// modest reports whether exact arithmetic on the number is cheap and float64 covers its range.
func modest(number string) bool {
	if len(number) > maxDigits {
		return false
	}
	if _, exponent, ok := strings.Cut(strings.ToLower(number), "e"); ok && len(strings.TrimLeft(exponent, "+-0")) > maxExponent {
		return false
	}
	_, err := strconv.ParseFloat(number, 64)
	return err == nil
}

// typeSet is a set of JSON Schema types (draft 2020-12, validation, section 6.1.1). A number is an integer or a
// fraction, so typeNumber includes typeInteger.
type typeSet uint8

// typeFraction is the numbers that aren't integers; JSON Schema has no name for it.
const (
	typeNull typeSet = 1 << iota
	typeBoolean
	typeInteger
	typeFraction
	typeString
	typeArray
	typeObject

	typeNumber = typeInteger | typeFraction
	typeAny    = typeNull | typeBoolean | typeNumber | typeString | typeArray | typeObject
)

type namedType struct {
	Name string
	Set  typeSet
}

// namedTypes are all named types in printing order; read-only.
var namedTypes = []namedType{
	{"object", typeObject}, {"array", typeArray}, {"string", typeString}, {"number", typeNumber},
	{"integer", typeInteger}, {"boolean", typeBoolean}, {"null", typeNull},
}

func typesNamed(names ...string) (t typeSet) {
	for _, n := range namedTypes {
		if slices.Contains(names, n.Name) {
			t |= n.Set
		}
	}
	return t
}

// Names returns the fewest names for the set, without "integer" next to "number".
func (t typeSet) Names() []string {
	var all []string
	for _, n := range namedTypes {
		if t&n.Set == n.Set {
			all, t = append(all, n.Name), t&^n.Set
		}
	}
	return all
}

// String returns the names for a message, such as "object or null".
func (t typeSet) String() string { return strings.Join(t.Names(), " or ") }

// Value returns the value of "type": a name, or a list of names.
func (t typeSet) Value() any {
	names := t.Names()
	if len(names) == 1 {
		return names[0]
	}
	list := make([]any, len(names))
	for i, n := range names {
		list[i] = n
	}
	return list
}
