package build

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"

	"voicegw/registry/document"
)

// maxDepth limits the nesting of a schema.json.
const maxDepth = 100

const (
	kindObject = '{'
	kindArray  = '['
	kindString = '"'
	kindNumber = '0'
	kindBool   = 't'
	kindNull   = 'n'
)

type node struct {
	kind    byte
	line    int
	members []member
	items   []*node
	text    string // the value of a string; a number, true or false as written
}

type member struct {
	key   string
	line  int
	value *node
}

type syntaxError struct {
	line int
	text string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.text) }

type jsonReader struct {
	dec   *json.Decoder
	lines []int // offsets of line ends
}

func parseJSON(data []byte) (*node, error) {
	p := &jsonReader{dec: json.NewDecoder(bytes.NewReader(data))}
	p.dec.UseNumber()
	for i, c := range data {
		if c == '\n' {
			p.lines = append(p.lines, i)
		}
	}
	n, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, &syntaxError{p.line(), "there is something after the JSON value; remove it"}
	}
	return n, nil
}

func (p *jsonReader) line() int {
	return 1 + sort.SearchInts(p.lines, int(p.dec.InputOffset()))
}

func (p *jsonReader) token() (json.Token, error) {
	t, err := p.dec.Token()
	if err == nil {
		return t, nil
	}
	var se *json.SyntaxError
	switch {
	case errors.As(err, &se):
		return nil, &syntaxError{1 + sort.SearchInts(p.lines, int(se.Offset)-1), "this is not valid JSON: " + se.Error()}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, &syntaxError{1 + len(p.lines), "the JSON ends too early; is a bracket missing?"}
	default:
		return nil, &syntaxError{p.line(), "this is not valid JSON: " + err.Error()}
	}
}

func (p *jsonReader) value(depth int) (*node, error) {
	t, err := p.token()
	if err != nil {
		return nil, err
	}
	n := &node{line: p.line()}
	switch v := t.(type) {
	case json.Delim:
		if depth >= maxDepth {
			return nil, &syntaxError{n.line, fmt.Sprintf("values are nested deeper than %d levels; make it flatter", maxDepth)}
		}
		n.kind = byte(v)
		return n, p.fill(n, depth)
	case string:
		n.kind, n.text = kindString, v
	case json.Number:
		n.kind, n.text = kindNumber, v.String()
	case bool:
		n.kind, n.text = kindBool, strconv.FormatBool(v)
	default:
		n.kind = kindNull
	}
	return n, nil
}

func (p *jsonReader) fill(n *node, depth int) error {
	for p.dec.More() {
		var m member
		if n.kind == kindObject {
			key, err := p.token()
			if err != nil {
				return err
			}
			m.key, _ = key.(string) // the decoder rejects other keys
			m.line = p.line()
		}
		value, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		if m.value = value; n.kind == kindObject {
			n.members = append(n.members, m)
		} else {
			n.items = append(n.items, value)
		}
	}
	_, err := p.token()
	return err
}

// get returns the value of a member; nil if it is missing or n isn't an object.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// str returns a string member, or "".
func (n *node) str(key string) string {
	if v := n.get(key); v != nil && v.kind == kindString {
		return v.text
	}
	return ""
}

// at follows a JSON Pointer; nil if it leads nowhere.
func (n *node) at(pointer string) *node {
	place, ok := document.ParsePointer(pointer)
	if !ok {
		return nil
	}
	for _, token := range place {
		if n = n.child(token); n == nil {
			return nil
		}
	}
	return n
}

func (n *node) child(token string) *node {
	if n.kind != kindArray {
		return n.get(token)
	}
	i, err := strconv.Atoi(token)
	if err != nil || i < 0 || i >= len(n.items) {
		return nil
	}
	return n.items[i]
}

// lineOf returns the line of a pointer's target, or of the nearest value around it. For a member it is the key's
// line.
func (n *node) lineOf(pointer string) int {
	line := n.line
	place, _ := document.ParsePointer(pointer)
	for _, token := range place {
		for _, m := range n.members {
			if m.key == token {
				line = m.line
			}
		}
		if n = n.child(token); n == nil {
			break
		}
		if n.kind != kindObject && n.kind != kindArray {
			return max(line, n.line)
		}
		line = max(line, n.line)
	}
	return line
}

func (n *node) compact() string {
	switch n.kind {
	case kindObject:
		parts := make([]string, len(n.members))
		for i, m := range n.members {
			parts[i] = quote(m.key) + ": " + m.value.compact()
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case kindArray:
		parts := make([]string, len(n.items))
		for i, item := range n.items {
			parts[i] = item.compact()
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case kindString:
		return quote(n.text)
	case kindNull:
		return "null"
	default:
		return n.text
	}
}

// quote encodes a JSON string without HTML escapes.
func quote(s string) string {
	text, _ := document.Marshal(s) // cannot fail
	return string(text)
}
