package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Arguments selects how much of a call's arguments is written. An unknown value, or none, means ArgumentsNone.
type Arguments string

// The values of Arguments.
const (
	ArgumentsNone Arguments = "none"
	// ArgumentsRedacted writes their names and kinds, and no values.
	ArgumentsRedacted Arguments = "redacted"
	// ArgumentsFull writes them as the tool received them, up to 16 KiB.
	ArgumentsFull Arguments = "full"
)

const (
	maxArgs = 16 << 10 // bytes of arguments that ArgumentsFull writes

	// The bounds of redacted arguments.
	maxNodes    = 64 // values in all
	maxItems    = 8  // of one list
	maxNames    = 32 // of one object
	maxDepth    = 6
	maxName     = 64      // characters of a name
	maxRedacted = 1 << 20 // bytes before redaction
)

func (a Arguments) kept() bool { return a == ArgumentsRedacted || a == ArgumentsFull }

func (a Arguments) render(args json.RawMessage) json.RawMessage {
	switch {
	case !a.kept() || len(args) == 0:
		return nil
	case a == ArgumentsRedacted:
		return withoutValues(args)
	case len(args) > maxArgs:
		return marker(fmt.Sprintf("<arguments left out, %d bytes are more than %d>", len(args), maxArgs))
	case !json.Valid(args):
		return marker(fmt.Sprintf("<arguments left out, %d bytes are no JSON>", len(args)))
	}
	return args
}

func marker(text string) json.RawMessage { return json.RawMessage(strconv.Quote(text)) }

// withoutValues replaces the values in JSON by their kinds. The result has at most a few KiB.
func withoutValues(args json.RawMessage) json.RawMessage {
	if len(args) > maxRedacted {
		return marker(fmt.Sprintf("<arguments, %d bytes>", len(args)))
	}
	var v any
	decoder := json.NewDecoder(bytes.NewReader(args))
	decoder.UseNumber() // a number need not fit a float
	if err := decoder.Decode(&v); err != nil || decoder.InputOffset() != int64(len(bytes.TrimRight(args, " \t\r\n"))) {
		return marker(fmt.Sprintf("<arguments, %d bytes that are no JSON>", len(args)))
	}
	r := redactor{left: maxNodes}
	r.value(v, 0)
	return r.out.Bytes()
}

type redactor struct {
	out  bytes.Buffer
	left int // values that may still be written
}

func (r *redactor) text(format string, args ...any) {
	// plainName has checked the names, and kinds need no escaping.
	r.out.WriteString(`"` + fmt.Sprintf(format, args...) + `"`)
}

func (r *redactor) value(v any, depth int) {
	r.left--
	switch v := v.(type) {
	case nil:
		r.out.WriteString("null")
	case bool:
		r.text("<boolean>")
	case json.Number:
		r.text("<number>")
	case string:
		r.text("<string, %s>", count(utf8.RuneCountInString(v), "character"))
	case []any:
		if depth == maxDepth {
			r.text("<list, %s>", count(len(v), "item"))
			return
		}
		r.list(v, depth)
	case map[string]any:
		if depth == maxDepth {
			r.text("<object, %s>", count(len(v), "name"))
			return
		}
		r.object(v, depth)
	}
}

func (r *redactor) list(list []any, depth int) {
	r.out.WriteByte('[')
	for i, item := range list {
		if i > 0 {
			r.out.WriteByte(',')
		}
		if i == maxItems || r.left <= 0 {
			r.text("<%d more>", len(list)-i)
			break
		}
		r.value(item, depth+1)
	}
	r.out.WriteByte(']')
}

func (r *redactor) object(object map[string]any, depth int) {
	r.out.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(object)) {
		if i > 0 {
			r.out.WriteByte(',')
		}
		if i == maxNames || r.left <= 0 {
			r.out.WriteString(`"…":`)
			r.text("<%d more>", len(object)-i)
			break
		}
		if plainName(name) {
			r.text("%s", name)
		} else {
			// A model may invent a name that quotes the user. The number makes the replacement unique.
			r.text("<name %d, %s>", i+1, count(utf8.RuneCountInString(name), "character"))
		}
		r.out.WriteByte(':')
		r.value(object[name], depth+1)
	}
	r.out.WriteByte('}')
}

func plainName(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return name[0] < '0' || name[0] > '9'
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
