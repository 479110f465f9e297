package build

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"voicegw/registry/document"
)

// syntaxProblem describes the first syntax error of a JSON text with its line; the text is empty without one.
func syntaxProblem(data []byte) (line int, text string) {
	var whole json.RawMessage
	err := json.Unmarshal(data, &whole)
	syntax, isSyntax := errors.AsType[*json.SyntaxError](err)
	switch {
	case err == nil:
		return 0, ""
	case !isSyntax:
		return 0, "this is not valid JSON: " + err.Error()
	case strings.HasPrefix(err.Error(), "unexpected end"):
		return lineAt(data, len(data)), "the JSON ends too early; is a bracket missing?"
	case strings.HasSuffix(err.Error(), "after top-level value"):
		return lineAt(data, int(syntax.Offset)-1), "there is something after the JSON value; remove it"
	}
	return lineAt(data, int(syntax.Offset)-1), "this is not valid JSON: " + err.Error()
}

// lineOf returns the line of a pointer's target in a valid JSON text, or of the nearest value around it. Of equal keys
// the last one counts.
func lineOf(data []byte, pointer string) int {
	place, _ := document.ParsePointer(pointer)
	dec := json.NewDecoder(bytes.NewReader(data))
	here := func() int { return lineAt(data, int(dec.InputOffset())) }
	t, _ := dec.Token()
	line := here()
	for depth, want := range place {
		kind, _ := t.(json.Delim)
		at, found := line, false
		for i := 0; !found && (kind == '{' || kind == '[') && dec.More(); i++ {
			name := strconv.Itoa(i)
			if kind == '{' {
				key, _ := dec.Token()
				name, _ = key.(string)
			}
			if name == want {
				value := len(data) - len(bytes.TrimLeft(data[dec.InputOffset():], ": \t\r\n,"))
				at = lineAt(data, value)
				if found = kind == '[' || depth < len(place)-1; found {
					break
				}
			}
			var skipped json.RawMessage
			if dec.Decode(&skipped) != nil {
				return at
			}
		}
		if line = max(line, at); !found {
			return line
		}
		t, _ = dec.Token()
		line = max(line, here())
	}
	return line
}

// spaced adds the spaces to compact JSON that people expect in a line.
func spaced(text json.RawMessage) string {
	var b strings.Builder
	quoted, escaped := false, false
	for _, c := range string(text) {
		b.WriteRune(c)
		if !quoted && (c == ',' || c == ':') {
			b.WriteByte(' ')
		}
		if c == '"' && !escaped {
			quoted = !quoted
		}
		escaped = c == '\\' && !escaped
	}
	return b.String()
}
