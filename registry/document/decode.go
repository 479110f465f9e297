package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of decoding.
const (
	// MaxArgsBytes limits a call's arguments.
	MaxArgsBytes = 64 << 10
	// MaxArgsDepth limits the nesting of arguments.
	MaxArgsDepth = 32
	// MaxSpecDepth limits the nesting of a schema.json or an answer.
	MaxSpecDepth = 64

	// Numbers are kept as written. Their size is limited, because exact comparisons need as many digits as the
	// exponent. The limit is for the value, not the spelling, so that canonical forms of accepted numbers are
	// accepted too.
	maxNumberDigits   = 100
	maxNumberExponent = 400

	maxDecodeProblems = 50
)

// Decode parses a single JSON value: numbers become json.Number, duplicate keys are reported (the first value
// counts), depth and size are limited, and UTF-8 must be valid. ok is false if there is no usable value.
func Decode(data []byte, maxBytes, maxDepth int) (v any, problems []Problem, ok bool) {
	if len(data) > maxBytes {
		return nil, []Problem{{Message: fmt.Sprintf("This is %d bytes of JSON, and at most %d are allowed.", len(data), maxBytes)}}, false
	}
	if !utf8.Valid(data) {
		return nil, []Problem{{Message: "This is not JSON, because it has bytes that are not UTF-8."}}, false
	}
	d := decoder{json: json.NewDecoder(bytes.NewReader(data)), maxDepth: maxDepth}
	d.json.UseNumber()
	v, err := d.value()
	if err == nil {
		if _, after := d.json.Token(); !errors.Is(after, io.EOF) {
			err = fmt.Errorf("there is more after the JSON value, at %s", Position(data, d.json.InputOffset()))
		}
	}
	if err != nil {
		return nil, append(d.problems, Problem{Path: d.path.String(), Message: "This is not valid JSON: " +
			syntaxMessage(data, err) + "."}), false
	}
	return v, d.problems, true
}

type decoder struct {
	json     *json.Decoder
	path     Pointer
	problems []Problem
	maxDepth int
}

func (d *decoder) problem(format string, args ...any) {
	if len(d.problems) < maxDecodeProblems {
		d.problems = append(d.problems, Problem{Path: d.path.String(), Message: fmt.Sprintf(format, args...)})
	}
}

func (d *decoder) value() (any, error) {
	token, err := d.json.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		if len(d.path) >= d.maxDepth {
			return nil, fmt.Errorf("it nests deeper than %d levels", d.maxDepth)
		}
		if token == '{' {
			return d.object()
		}
		return d.array()
	case json.Number:
		if why := checkNumber(string(token)); why != "" {
			d.problem("The number %s %s.", Shorten(string(token), 40), why)
			return json.Number("0"), nil
		}
	}
	return token, nil
}

func (d *decoder) object() (any, error) {
	object := map[string]any{}
	for d.json.More() {
		token, err := d.json.Token()
		if err != nil {
			return nil, err
		}
		key, _ := token.(string) // the decoder rejects other keys
		d.path = append(d.path, key)
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		if _, twice := object[key]; twice {
			d.problem("The object has the key %q twice; remove one.", key)
		} else {
			object[key] = v
		}
		d.path = d.path[:len(d.path)-1]
	}
	_, err := d.json.Token() // the brace
	return object, err
}

func (d *decoder) array() (any, error) {
	list := []any{}
	for d.json.More() {
		d.path = append(d.path, strconv.Itoa(len(list)))
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		d.path = d.path[:len(d.path)-1]
	}
	_, err := d.json.Token() // the bracket
	return list, err
}

func checkNumber(s string) string {
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if e, err := strconv.Atoi(s[i+1:]); err != nil || !exponentOK(e) {
			return fmt.Sprintf("has an exponent beyond %d", maxNumberExponent)
		}
	}
	_, digits, point := decimal(s)
	switch {
	case len(digits) > maxNumberDigits:
		return fmt.Sprintf("has more than %d digits", maxNumberDigits)
	case digits != "" && !exponentOK(point-1):
		return fmt.Sprintf("is beyond ten to the power of %d, or of -%d", maxNumberExponent, maxNumberExponent)
	}
	return ""
}

func exponentOK(e int) bool { return -maxNumberExponent <= e && e <= maxNumberExponent }

func syntaxMessage(data []byte, err error) string {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF) && len(bytes.TrimSpace(data)) == 0:
		return "it is empty"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends in the middle"
	case errors.As(err, &syntax):
		return syntax.Error() + " at " + Position(data, syntax.Offset)
	}
	return err.Error()
}

// Position describes the line and column of an offset.
func Position(data []byte, offset int64) string {
	before := data[:min(max(int(offset)-1, 0), len(data))]
	line := bytes.Count(before, []byte{'\n'}) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("line %d, column %d", line, column)
}
