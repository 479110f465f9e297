package build

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

var errTypes = errors.New("the parameters have no Go type")

type shape struct {
	Description string            `json:"description"`
	Default     json.RawMessage   `json:"default"` // nil for null
	Enum        []json.RawMessage `json:"enum"`    // without null
	Properties  properties        `json:"properties"`
	Required    []string          `json:"required"`
	Items       *shape            `json:"items"`
	Values      *shape            `json:"additionalProperties"` // of a map with arbitrary names

	types    []string // without null
	nullable bool
	bounds   []string // for the comment
	open     bool     // the schema true
	never    bool     // the schema false
}

func (sh *shape) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case "true":
		sh.open = true
		return nil
	case "false":
		sh.never = true
		return nil
	}
	type plain shape
	var more struct {
		Type   json.RawMessage
		Format string
		AnyOf  []*shape
		OneOf  []*shape
	}
	var written map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(text, (*plain)(sh)), json.Unmarshal(text, &more), json.Unmarshal(text, &written)); err != nil {
		return err
	}
	if string(sh.Default) == "null" {
		sh.Default = nil
	}
	if sh.Values != nil && sh.Values.never {
		sh.Values = nil
	}
	if more.Type != nil {
		if json.Unmarshal(more.Type, &sh.types) != nil {
			sh.types = []string{strings.Trim(string(more.Type), `"`)}
		}
	}
	if i := slices.Index(sh.types, "null"); i >= 0 {
		sh.types, sh.nullable = slices.Delete(sh.types, i, i+1), true
	}
	sh.bounds = ranges(written)
	if more.Format != "" {
		sh.bounds = append(sh.bounds, "Format "+more.Format+".")
	}
	enum := len(sh.Enum) > 0
	sh.Enum = slices.DeleteFunc(sh.Enum, func(v json.RawMessage) bool {
		sh.nullable = sh.nullable || string(v) == "null"
		return string(v) == "null"
	})
	if alternatives := slices.Concat(more.AnyOf, more.OneOf); len(sh.types) == 0 && !enum {
		sh.choose(alternatives)
	}
	return nil
}

// choose supports a schema or null. Other alternatives have no Go type, so their values stay raw JSON.
func (sh *shape) choose(alternatives []*shape) {
	var others []*shape
	for _, one := range alternatives {
		if one.nullable && len(one.types) == 0 && one.Enum == nil {
			sh.nullable = true
		} else {
			others = append(others, one)
		}
	}
	if len(others) != 1 {
		return
	}
	own := *sh
	*sh = *others[0]
	sh.nullable = sh.nullable || own.nullable
	sh.bounds = append(own.bounds, sh.bounds...)
	if own.Description != "" {
		sh.Description = own.Description
	}
	if own.Default != nil {
		sh.Default = own.Default
	}
}

func (sh *shape) has(t string) bool { return len(sh.types) == 1 && sh.types[0] == t }

type property struct {
	key   string
	value *shape
}

// properties keeps the order of the text.
type properties []property

func (p *properties) UnmarshalJSON(text []byte) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	_, err := dec.Token()
	for err == nil && dec.More() {
		var key json.Token
		if key, err = dec.Token(); err == nil {
			one := property{value: new(shape)}
			one.key, _ = key.(string)
			err = dec.Decode(one.value)
			*p = append(*p, one)
		}
	}
	return err
}

func ranges(schema map[string]json.RawMessage) []string {
	var all []string
	for _, b := range [...]struct{ low, high, unit string }{
		{"minimum", "maximum", ""}, {"exclusiveMinimum", "exclusiveMaximum", " (exclusive)"},
		{"minLength", "maxLength", " characters"}, {"minItems", "maxItems", " items"},
	} {
		low, high := schema[b.low], schema[b.high]
		switch {
		case low != nil && high != nil:
			all = append(all, fmt.Sprintf("%s to %s%s.", low, high, b.unit))
		case low != nil:
			all = append(all, fmt.Sprintf("At least %s%s.", low, b.unit))
		case high != nil:
			all = append(all, fmt.Sprintf("At most %s%s.", high, b.unit))
		}
	}
	return all
}

func integer(text string) (int64, bool) {
	const longest = 40 // 1e999999999 is a short text and a long number
	if _, exponent, ok := strings.Cut(strings.ToLower(text), "e"); len(text) > longest || ok && len(exponent) > 3 {
		return 0, false
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok || !r.IsInt() || !r.Num().IsInt64() {
		return 0, false
	}
	return r.Num().Int64(), true
}
