// Package strict reads the gateway's YAML and JSON files without guessing: an unknown key, an invalid value or an alias
// is a problem with a line. It reports all problems together.
package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"voicegw/internal/textutil"
)

// MaxBytes bounds the size of a file.
const MaxBytes = 1 << 20

const maxDepth = 40

// Problem is one error in a file.
type Problem struct {
	Line int    // from 1; 0 means the whole file
	Text string // the error and its fix
}

// Error lists all problems of a file.
type Error struct {
	Name     string // of the file
	Problems []Problem
}

// Error returns the problems, one per line, as name:line: text.
func (e *Error) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(e.Name)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d", p.Line)
		}
		b.WriteString(": " + p.Text)
	}
	return b.String()
}

// Reader collects the problems of one file. Only one goroutine may use it. A nil node is a missing key and no problem:
// for it the methods that read a value return zero and false.
type Reader struct {
	name     string
	problems []Problem
}

// NewReader starts reading a file.
func NewReader(name string) *Reader { return &Reader{name: name} }

// Problem records a problem at n.
func (r *Reader) Problem(n *yaml.Node, format string, args ...any) {
	line := 0
	if n != nil {
		line = n.Line
	}
	r.problems = append(r.problems, Problem{Line: line, Text: fmt.Sprintf(format, args...)})
}

// Err returns nil, or an *Error with the problems in the order of their lines.
func (r *Reader) Err() error {
	if len(r.problems) == 0 {
		return nil
	}
	ps := slices.Clone(r.problems)
	sort.SliceStable(ps, func(i, j int) bool { return ps[i].Line < ps[j].Line })
	return &Error{Name: r.name, Problems: ps}
}

// Document parses data and returns its top node, or nil after recording a problem.
func (r *Reader) Document(data []byte) *yaml.Node {
	if len(data) > MaxBytes {
		r.Problem(nil, "the file has %d bytes; at most %d are read", len(data), MaxBytes)
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			r.Problem(nil, "the file is empty")
			return nil
		}
		r.syntax(err)
		return nil
	}
	var more yaml.Node
	switch err := dec.Decode(&more); {
	case errors.Is(err, io.EOF):
	case err != nil:
		r.syntax(err)
		return nil
	default:
		r.Problem(&more, "there is a second document; put everything into one, without ---")
		return nil
	}
	if len(doc.Content) != 1 {
		r.Problem(nil, "the file is empty")
		return nil
	}
	if !r.plain(doc.Content[0], 0) {
		return nil
	}
	return doc.Content[0]
}

// syntax records an error of the YAML parser, with its line if the error names one.
func (r *Reader) syntax(err error) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if num, tail, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(num); err == nil {
				line, text = n, tail
			}
		}
	}
	r.problems = append(r.problems, Problem{Line: line, Text: "this is not YAML: " + text})
}

// plain records a problem for anchors, aliases and deep nesting.
func (r *Reader) plain(n *yaml.Node, depth int) bool {
	if depth > maxDepth {
		r.Problem(n, "nested more than %d deep", maxDepth)
		return false
	}
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		r.Problem(n, "anchors and aliases are not supported; write the value out")
		return false
	}
	ok := true
	for _, c := range n.Content {
		ok = r.plain(c, depth+1) && ok
	}
	return ok
}

// Map is a mapping whose keys have been checked.
type Map struct {
	Node   *yaml.Node
	values map[string]*yaml.Node
	order  []string
}

// Get returns the value at key, or nil.
func (m Map) Get(key string) *yaml.Node { return m.values[key] }

// Has reports whether key is present.
func (m Map) Has(key string) bool { return m.values[key] != nil }

// Keys returns the known keys that are present, in the order of the file.
func (m Map) Keys() []string { return m.order }

// Map reads n as a mapping that may have only the given keys, or any key if none is given. what names the mapping in
// problems. A mapping that cannot be read has no keys.
func (r *Reader) Map(n *yaml.Node, what string, keys ...string) (Map, bool) {
	if n == nil {
		return Map{}, false
	}
	if n.Kind != yaml.MappingNode {
		if len(keys) > 0 {
			r.Problem(n, "%s must be a mapping with the keys %s, not %s", what, Join(keys), Kind(n))
		} else {
			r.Problem(n, "%s must be a mapping, not %s", what, Kind(n))
		}
		return Map{}, false
	}
	m := Map{Node: n, values: map[string]*yaml.Node{}}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		switch {
		case k.Kind != yaml.ScalarNode:
			r.Problem(k, "a key of %s must be a word", what)
		case m.values[k.Value] != nil:
			r.Problem(k, "%s has the key %q twice", what, k.Value)
		case len(keys) > 0 && !slices.Contains(keys, k.Value):
			r.Problem(k, "%s has no key %q%s; it knows %s", what, k.Value, Near(k.Value, keys), Join(keys))
		default:
			m.values[k.Value] = v
			m.order = append(m.order, k.Value)
		}
	}
	return m, true
}

// List reads n as a sequence, which must not be empty.
func (r *Reader) List(n *yaml.Node, what string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		r.Problem(n, "%s must be a list, each entry on its own line after \"- \", not %s", what, Kind(n))
		return nil
	}
	if len(n.Content) == 0 {
		r.Problem(n, "%s is an empty list; leave the key out or fill it", what)
	}
	return n.Content
}

// Text reads a scalar of any type as it is written.
func (r *Reader) Text(n *yaml.Node, what string) (string, bool) {
	if n == nil {
		return "", false
	}
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		r.Problem(n, "%s must be text, not %s", what, Kind(n))
		return "", false
	}
	return n.Value, true
}

// Word reads one of a list of words.
func (r *Reader) Word(n *yaml.Node, what string, words ...string) (string, bool) {
	s, ok := r.Text(n, what)
	if !ok {
		return "", false
	}
	if !slices.Contains(words, s) {
		r.Problem(n, "%s cannot be %q%s; it is one of %s", what, s, Near(s, words), Join(words))
		return "", false
	}
	return s, true
}

// Int reads a whole number from lo to hi.
func (r *Reader) Int(n *yaml.Node, what string, lo, hi int) (int, bool) {
	var v int
	if n == nil {
		return 0, false
	}
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || n.Decode(&v) != nil || v < lo || v > hi {
		r.Problem(n, "%s must be a whole number from %d to %d, not %s", what, lo, hi, Kind(n))
		return 0, false
	}
	return v, true
}

// Float reads a number from lo to hi.
func (r *Reader) Float(n *yaml.Node, what string, lo, hi float64) (float64, bool) {
	var v float64
	if n == nil {
		return 0, false
	}
	if n.Kind != yaml.ScalarNode || (n.Tag != "!!int" && n.Tag != "!!float") || n.Decode(&v) != nil || !(v >= lo && v <= hi) {
		r.Problem(n, "%s must be a number from %g to %g, not %s", what, lo, hi, Kind(n))
		return 0, false
	}
	return v, true
}

// Bool reads true or false.
func (r *Reader) Bool(n *yaml.Node, what string) (value, ok bool) {
	if n == nil {
		return false, false
	}
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" || n.Decode(&value) != nil {
		r.Problem(n, "%s must be true or false, not %s", what, Kind(n))
		return false, false
	}
	return value, true
}

// Duration reads a duration such as 500ms or 1.5s, or a whole number of ms, from 0 to longest.
func (r *Reader) Duration(n *yaml.Node, what string, longest time.Duration) (time.Duration, bool) {
	var d time.Duration
	ok := false
	if n == nil {
		return 0, false
	}
	if n.Kind == yaml.ScalarNode {
		if ms, err := strconv.Atoi(n.Value); err == nil && ms >= 0 && ms <= int(longest/time.Millisecond) {
			d, ok = time.Duration(ms)*time.Millisecond, true
		} else if v, err := time.ParseDuration(n.Value); err == nil {
			d, ok = v, true
		}
	}
	if !ok || d < 0 || d > longest {
		r.Problem(n, "%s must be a time such as 500ms or 2s (a bare number is ms), at most %s, not %s", what, longest, Kind(n))
		return 0, false
	}
	return d, true
}

// Kind describes a node for a problem.
func Kind(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "nothing"
	}
	v := n.Value
	if len(v) > 40 {
		v = v[:40] + "…"
	}
	return strconv.Quote(v)
}

// Join lists words as "a, b and c".
func Join(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// Near returns " (did you mean …?)" if one of words is similar to word, otherwise "".
func Near(word string, words []string) string {
	best := textutil.Nearest(word, words)
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}
