package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"voicegw/sim/rest"
	"voicegw/sim/scenario"
)

type reader = func(raw json.RawMessage, path string) *rest.Error

type fields map[string]reader

func members(raw json.RawMessage, path string) ([]scenario.Member, *rest.Error) {
	ms, ok := scenario.Members(raw)
	if !ok {
		return nil, rest.WrongType(path, "an object", kindOf(raw))
	}
	return ms, nil
}

// apply reads raw as an object with these fields. It stops at the first problem.
func (f fields) apply(raw json.RawMessage, path string) *rest.Error {
	ms, err := members(raw, cmp.Or(path, "body"))
	if err != nil {
		return err
	}
	for _, m := range ms {
		at := strings.TrimPrefix(path+"."+m.Key, ".")
		read := f[m.Key]
		if read == nil {
			return rest.Invalid("unknown_parameter", at, "Unknown parameter: '%s'.", at)
		}
		if err := read(m.Value, at); err != nil {
			return err
		}
	}
	return nil
}

// readType reads the member "type" of an object, on which its other members depend. A missing
// one keeps dst, and is an error if dst is empty.
func readType(dst *string, raw json.RawMessage, path string, allowed ...string) *rest.Error {
	ms, err := members(raw, path)
	if err != nil {
		return err
	}
	path += ".type"
	for _, m := range ms {
		if m.Key != "type" {
			continue
		}
		if err := word(dst, allowed...)(m.Value, path); err != nil {
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

func scalar[T any](dst *T, kind string) reader {
	return func(raw json.RawMessage, path string) *rest.Error {
		var v *T
		if json.Unmarshal(raw, &v) != nil || v == nil {
			return rest.WrongType(path, kind, kindOf(raw))
		}
		*dst = *v
		return nil
	}
}

func optional[T any](dst **T, read func(*T) reader) reader {
	return func(raw json.RawMessage, path string) *rest.Error {
		var v T
		if *dst = nil; isNull(raw) {
			return nil
		}
		*dst = &v
		return read(&v)(raw, path)
	}
}

func text(dst *string) reader { return scalar(dst, "a string") }

func truth(dst *bool) reader { return scalar(dst, "a boolean") }

func word(dst *string, allowed ...string) reader {
	return func(raw json.RawMessage, path string) *rest.Error {
		var s string
		if err := text(&s)(raw, path); err != nil {
			return err
		}
		if !slices.Contains(allowed, s) {
			return rest.BadValue(path, s, allowed...)
		}
		*dst = s
		return nil
	}
}

func decimal(dst *float64, lo, hi float64) reader {
	return func(raw json.RawMessage, path string) *rest.Error {
		var v float64
		if err := scalar(&v, "a decimal")(raw, path); err != nil {
			return err
		}
		if v < lo || v > hi {
			return outOfRange(path, lo, hi, v)
		}
		*dst = v
		return nil
	}
}

func integer(dst *int, lo, hi int) reader {
	return func(raw json.RawMessage, path string) *rest.Error {
		var v float64
		if kindOf(raw) != "an integer" || json.Unmarshal(raw, &v) != nil {
			return rest.WrongType(path, "an integer", kindOf(raw))
		}
		if v < float64(lo) || v > float64(hi) {
			return outOfRange(path, float64(lo), float64(hi), v)
		}
		*dst = int(v)
		return nil
	}
}

func asIs(dst *json.RawMessage) reader {
	return func(raw json.RawMessage, _ string) *rest.Error {
		*dst = raw
		return nil
	}
}

func ignored(json.RawMessage, string) *rest.Error { return nil }

func orNull(none func(), some reader) reader {
	return func(raw json.RawMessage, path string) *rest.Error {
		if isNull(raw) {
			none()
			return nil
		}
		return some(raw, path)
	}
}

func array(raw json.RawMessage, path string) ([]json.RawMessage, *rest.Error) {
	var list []json.RawMessage
	err := scalar(&list, "an array of objects")(raw, path)
	return list, err
}

func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// modalities reads output_modalities: ["audio"] or ["text"], not both.
func modalities(dst *[]string) reader {
	return func(raw json.RawMessage, path string) *rest.Error {
		var list []string
		if err := scalar(&list, "an array of strings")(raw, path); err != nil {
			return err
		}
		for i, m := range list {
			if m != "audio" && m != "text" {
				return rest.BadValue(index(path, i), m, "text", "audio")
			}
		}
		if len(list) != 1 {
			return rest.Invalid("invalid_value", path,
				"Invalid modalities: ['%s']. Supported combinations are: ['text'] and ['audio'].", strings.Join(list, "', '"))
		}
		*dst = list
		return nil
	}
}
