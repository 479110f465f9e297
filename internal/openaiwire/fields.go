package openaiwire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"voicegw/internal/strict"
)

// Reader reads a value of a request or an event into its destination. path is its place in the provider's words, such as
// session.tools[2].name, for the error.
type Reader = func(raw json.RawMessage, path string) *Error

// Fields are the known members of an object.
type Fields map[string]Reader

func membersOf(raw json.RawMessage, path string) ([]strict.Member, *Error) {
	ms, ok := strict.Members(raw)
	if !ok {
		return nil, WrongType(path, "an object", KindOf(raw))
	}
	return ms, nil
}

// Read reads raw as an object with these fields. It stops at the first problem.
func (f Fields) Read(raw json.RawMessage, path string) *Error {
	ms, err := membersOf(raw, cmp.Or(path, "body"))
	if err != nil {
		return err
	}
	for _, m := range ms {
		at := strings.TrimPrefix(path+"."+m.Key, ".")
		read := f[m.Key]
		if read == nil {
			return Invalid("unknown_parameter", at, "Unknown parameter: '%s'.", at)
		}
		if err := read(m.Value, at); err != nil {
			return err
		}
	}
	return nil
}

// readType reads the member "type" of an object, on which its other members depend. A missing
// one keeps dst, and is an error if dst is empty.
func readType(dst *string, raw json.RawMessage, path string, allowed ...string) *Error {
	ms, err := membersOf(raw, path)
	if err != nil {
		return err
	}
	path += ".type"
	for _, m := range ms {
		if m.Key != "type" {
			continue
		}
		if err := Word(dst, allowed...)(m.Value, path); err != nil {
			return err
		}
	}
	return need(*dst, path)
}

// KindOf returns the type of a JSON value in the provider's words.
func KindOf(raw json.RawMessage) string {
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

func scalar[T any](dst *T, kind string) Reader {
	return func(raw json.RawMessage, path string) *Error {
		var v *T
		if json.Unmarshal(raw, &v) != nil || v == nil {
			return WrongType(path, kind, KindOf(raw))
		}
		*dst = *v
		return nil
	}
}

// Optional reads a value that may be null; *dst is then nil.
func Optional[T any](dst **T, read func(*T) Reader) Reader {
	return OrNull(func() { *dst = nil }, present(dst, read))
}

// present reads a value into a new *dst.
func present[T any](dst **T, read func(*T) Reader) Reader {
	return func(raw json.RawMessage, path string) *Error {
		*dst = new(T)
		return read(*dst)(raw, path)
	}
}

// Text reads a string.
func Text(dst *string) Reader { return scalar(dst, "a string") }

// Bool reads true or false.
func Bool(dst *bool) Reader { return scalar(dst, "a boolean") }

// Word reads one of the allowed strings.
func Word(dst *string, allowed ...string) Reader {
	return func(raw json.RawMessage, path string) *Error {
		var s string
		if err := Text(&s)(raw, path); err != nil {
			return err
		}
		if !slices.Contains(allowed, s) {
			return BadValue(path, s, allowed...)
		}
		*dst = s
		return nil
	}
}

// Decimal reads a number between lo and hi.
func Decimal(dst *float64, lo, hi float64) Reader {
	return func(raw json.RawMessage, path string) *Error {
		var v float64
		if err := scalar(&v, "a decimal")(raw, path); err != nil {
			return err
		}
		*dst = v
		return within(path, lo, hi, v)
	}
}

func within(path string, lo, hi, v float64) *Error {
	if v < lo || v > hi {
		return OutOfRange(path, lo, hi, v)
	}
	return nil
}

// Integer reads a whole number between lo and hi.
func Integer(dst *int, lo, hi int) Reader {
	return func(raw json.RawMessage, path string) *Error {
		var v float64
		if KindOf(raw) != "an integer" || json.Unmarshal(raw, &v) != nil {
			return WrongType(path, "an integer", KindOf(raw))
		}
		*dst = int(v)
		return within(path, float64(lo), float64(hi), v)
	}
}

// Raw keeps any value as it is.
func Raw(dst *json.RawMessage) Reader {
	return func(raw json.RawMessage, _ string) *Error {
		*dst = raw
		return nil
	}
}

// Ignored accepts any value.
func Ignored(json.RawMessage, string) *Error { return nil }

// OrNull calls none for null, and some for another value.
func OrNull(none func(), some Reader) Reader {
	return func(raw json.RawMessage, path string) *Error {
		if isNull(raw) {
			none()
			return nil
		}
		return some(raw, path)
	}
}

// Array splits an array into its elements.
func Array(raw json.RawMessage, path string) ([]json.RawMessage, *Error) {
	var list []json.RawMessage
	err := scalar(&list, "an array of objects")(raw, path)
	return list, err
}

// each reads the elements of an array after begin.
func each(read Reader, begin func()) Reader {
	return func(raw json.RawMessage, path string) *Error {
		list, err := Array(raw, path)
		begin()
		for i, e := range list {
			err = cmp.Or(err, read(e, Path(path, i)))
		}
		return err
	}
}

// Path is the name of element i of a list: tools[3].
func Path(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }

// modalities reads output_modalities: ["audio"] or ["text"], not both.
func modalities(dst *[]string) Reader {
	return func(raw json.RawMessage, path string) *Error {
		var list []string
		if err := scalar(&list, "an array of strings")(raw, path); err != nil {
			return err
		}
		for i, m := range list {
			if m != "audio" && m != "text" {
				return BadValue(Path(path, i), m, "text", "audio")
			}
		}
		if len(list) != 1 {
			return Invalid("invalid_value", path,
				"Invalid modalities: ['%s']. Supported combinations are: ['text'] and ['audio'].", strings.Join(list, "', '"))
		}
		*dst = list
		return nil
	}
}
