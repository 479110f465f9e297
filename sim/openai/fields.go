package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// fields maps the allowed members of a JSON object to functions that handle their values.
type fields map[string]func(raw json.RawMessage, path string) *apiError

// keyValue is one member of a JSON object.
type keyValue struct {
	key   string
	value json.RawMessage
}

// members returns the members of a JSON object in its own order.
func members(raw json.RawMessage, path string) ([]keyValue, *apiError) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	t, err := dec.Token()
	if err != nil || t != json.Delim('{') {
		return nil, invalidType(path, "an object", kindOf(raw))
	}
	var out []keyValue
	for dec.More() {
		t, err := dec.Token()
		key, ok := t.(string)
		var value json.RawMessage
		if err != nil || !ok || dec.Decode(&value) != nil {
			return nil, invalidType(path, "an object", "something else")
		}
		out = append(out, keyValue{key, value})
	}
	return out, nil
}

// apply reads raw as an object with these fields. It stops at the first problem.
func (f fields) apply(raw json.RawMessage, path string) *apiError {
	ms, err := members(raw, path)
	if err != nil {
		return err
	}
	for _, m := range ms {
		at := path + "." + m.key
		read := f[m.key]
		if read == nil {
			return unknownParameter(at)
		}
		if err := read(m.value, at); err != nil {
			return err
		}
	}
	return nil
}

// readType reads the member "type" of an object, on which its other members depend. A missing
// one keeps dst, and is an error if dst is empty.
func readType(dst *string, raw json.RawMessage, path string, allowed ...string) *apiError {
	ms, err := members(raw, path)
	if err != nil {
		return err
	}
	path += ".type"
	for _, m := range ms {
		if m.key != "type" {
			continue
		}
		if err := word(dst, allowed...)(m.value, path); err != nil {
			return err
		}
	}
	return need(*dst, path)
}

// kindOf returns the type of a JSON value in the provider's words.
func kindOf(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	if bytes.ContainsAny(raw, ".eE") {
		return "a decimal"
	}
	return "an integer"
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

// text reads a string.
func text(dst *string) func(json.RawMessage, string) *apiError {
	return func(raw json.RawMessage, path string) *apiError {
		var s *string
		if json.Unmarshal(raw, &s) != nil || s == nil {
			return invalidType(path, "a string", kindOf(raw))
		}
		*dst = *s
		return nil
	}
}

// word reads a string that must be one of a list.
func word(dst *string, allowed ...string) func(json.RawMessage, string) *apiError {
	return func(raw json.RawMessage, path string) *apiError {
		var s string
		if err := text(&s)(raw, path); err != nil {
			return err
		}
		if !slices.Contains(allowed, s) {
			return invalidValue(path, s, allowed...)
		}
		*dst = s
		return nil
	}
}

func truth(dst *bool) func(json.RawMessage, string) *apiError {
	return func(raw json.RawMessage, path string) *apiError {
		var b *bool
		if json.Unmarshal(raw, &b) != nil || b == nil {
			return invalidType(path, "a boolean", kindOf(raw))
		}
		*dst = *b
		return nil
	}
}

// decimal reads a number in a range.
func decimal(dst *float64, lo, hi float64) func(json.RawMessage, string) *apiError {
	return func(raw json.RawMessage, path string) *apiError {
		var v *float64
		if json.Unmarshal(raw, &v) != nil || v == nil {
			return invalidType(path, "a decimal", kindOf(raw))
		}
		if *v < lo || *v > hi {
			return outOfRange(path, lo, hi, *v)
		}
		*dst = *v
		return nil
	}
}

// integer reads a whole number in a range.
func integer(dst *int, lo, hi int) func(json.RawMessage, string) *apiError {
	return func(raw json.RawMessage, path string) *apiError {
		var v float64
		if kindOf(raw) != "an integer" || json.Unmarshal(raw, &v) != nil {
			return invalidType(path, "an integer", kindOf(raw))
		}
		if v < float64(lo) || v > float64(hi) {
			return outOfRange(path, float64(lo), float64(hi), v)
		}
		*dst = int(v)
		return nil
	}
}

// asIs keeps a value without reading it.
func asIs(dst *json.RawMessage) func(json.RawMessage, string) *apiError {
	return func(raw json.RawMessage, _ string) *apiError {
		*dst = raw
		return nil
	}
}

// ignored accepts a value that has no effect.
func ignored(json.RawMessage, string) *apiError { return nil }

// orNull calls none for null and some for everything else.
func orNull(none func(), some func(json.RawMessage, string) *apiError) func(json.RawMessage, string) *apiError {
	return func(raw json.RawMessage, path string) *apiError {
		if isNull(raw) {
			none()
			return nil
		}
		return some(raw, path)
	}
}

// array reads the elements of an array.
func array(raw json.RawMessage, path string) ([]json.RawMessage, *apiError) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || list == nil {
		return nil, invalidType(path, "an array of objects", kindOf(raw))
	}
	return list, nil
}

// index is the path of an element.
func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// modalities reads output_modalities: ["audio"] or ["text"], not both.
func modalities(dst *[]string) func(json.RawMessage, string) *apiError {
	return func(raw json.RawMessage, path string) *apiError {
		var list []string
		if json.Unmarshal(raw, &list) != nil || list == nil {
			return invalidType(path, "an array of strings", kindOf(raw))
		}
		for i, m := range list {
			if m != "audio" && m != "text" {
				return invalidValue(index(path, i), m, "text", "audio")
			}
		}
		if len(list) != 1 {
			return invalid("invalid_value", path, "Invalid modalities: [%s]. Supported combinations are: ['text'] and ['audio'].", quoteJoin(list))
		}
		*dst = list
		return nil
	}
}

func quoteJoin(list []string) string {
	for i := range list {
		list[i] = "'" + list[i] + "'"
	}
	return strings.Join(list, ", ")
}
