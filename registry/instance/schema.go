package instance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"voicegw/registry/format"
	"voicegw/registry/jsontype"
)

// schemaURL is the address under which the compiler knows the schema.
const schemaURL = "tool:///schema.json"

var errNothingOpened = errors.New("a schema refers to nothing outside itself")

// node is a schema of the document, or a made-up one that asks a question.
type node struct {
	at  string         // its JSON pointer; for a made-up one, a name that is not a pointer
	doc map[string]any // nil for true and false
	yes bool           // for a schema without doc
	// must is the property that a made-up schema requires.
	must string
	// only are the types that a made-up schema allows; 0 for all other schemas.
	only jsontype.Set

	compiled *jsonschema.Schema
	tried    bool // to compile it
}

// list, sub, text and count read a keyword; they return the zero value if it is missing or
// has another type.
func (n *node) list(keyword string) []any         { v, _ := n.doc[keyword].([]any); return v }
func (n *node) sub(keyword string) map[string]any { v, _ := n.doc[keyword].(map[string]any); return v }

func (n *node) names(keyword string) []string {
	var all []string
	for _, v := range n.list(keyword) {
		if s, ok := v.(string); ok {
			all = append(all, s)
		}
	}
	return all
}

// isInt64 reports whether a handler gets values of the schema as an int64.
func (n *node) isInt64() bool {
	names := n.names("type")
	if one, is := n.doc["type"].(string); is {
		names = []string{one}
	}
	return slices.Contains(names, "integer") && !slices.ContainsFunc(names, func(t string) bool { return t != "integer" && t != "null" })
}

// count reads a size; it returns otherwise if the keyword is missing.
func (n *node) count(keyword string, otherwise int) int {
	r := rational(n.doc[keyword])
	if r == nil || !r.IsInt() {
		return otherwise
	}
	if !r.Num().IsInt64() || r.Num().Int64() > huge {
		return huge
	}
	return int(r.Num().Int64())
}

// huge is a size that nothing reaches.
const huge = 1 << 40

// where names a keyword of n: alone if the message is about n itself, otherwise by its pointer.
func (n *node) where(keyword string, place string) string {
	if n.at == place {
		return keyword
	}
	return keyword + " (" + n.at + "/" + keyword + ")"
}

// document is a schema with its parts by JSON pointer.
type document struct {
	root     any
	nodes    map[string]*node
	anchors  map[string]string // pointers, by name
	compiler *jsonschema.Compiler
}

func newDocument(schema json.RawMessage) (*document, error) {
	dec := json.NewDecoder(bytes.NewReader(schema))
	dec.UseNumber()
	d := &document{nodes: map[string]*node{}, anchors: map[string]string{}, compiler: jsonschema.NewCompiler()}
	if err := dec.Decode(&d.root); err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	d.compiler.Draft = jsonschema.Draft2020
	d.compiler.AssertFormat, d.compiler.Formats = true, format.Checks()
	d.compiler.LoadURL = func(url string) (io.ReadCloser, error) { return nil, fmt.Errorf("%w: %s", errNothingOpened, url) }
	if err := d.compiler.AddResource(schemaURL, bytes.NewReader(schema)); err != nil {
		return nil, fmt.Errorf("reading the schema: %w", err)
	}
	if _, err := d.compiler.Compile(schemaURL); err != nil {
		return nil, fmt.Errorf("compiling the schema: %w", err)
	}
	d.findAnchors(d.root, "")
	return d, nil
}

func (d *document) findAnchors(v any, at string) {
	switch v := v.(type) {
	case map[string]any:
		if name, ok := v["$anchor"].(string); ok {
			d.anchors[name] = at
		}
		for key, sub := range v {
			d.findAnchors(sub, join(at, key))
		}
	case []any:
		for i, sub := range v {
			d.findAnchors(sub, join(at, strconv.Itoa(i)))
		}
	}
}

// node returns the schema at a pointer, or nil.
func (d *document) node(at string) *node {
	if n, has := d.nodes[at]; has {
		return n
	}
	v := d.root
	for token := range strings.SplitSeq(strings.TrimPrefix(at, "/"), "/") {
		if at == "" {
			break
		}
		token = unescape(token)
		switch in := v.(type) {
		case map[string]any:
			v = in[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	n := &node{at: at}
	switch v := v.(type) {
	case bool:
		n.yes = v
	case map[string]any:
		n.doc = v
	default:
		return nil
	}
	d.nodes[at] = n
	return n
}

// child returns the schema below n, or nil.
func (d *document) child(n *node, tokens ...string) *node {
	if n.must != "" || n.only != 0 {
		return nil
	}
	at := n.at
	for _, token := range tokens {
		at = join(at, token)
	}
	return d.node(at)
}

// children returns the schemas of a list below n.
func (d *document) children(n *node, keyword string) []*node {
	var all []*node
	for i := range n.list(keyword) {
		if sub := d.child(n, keyword, strconv.Itoa(i)); sub != nil {
			all = append(all, sub)
		}
	}
	return all
}

// referred returns the target of n's $ref; nil if n has none.
func (d *document) referred(n *node) *node {
	ref, ok := n.doc["$ref"].(string)
	if !ok {
		return nil
	}
	fragment, local := strings.CutPrefix(ref, "#")
	if !local {
		return nil
	}
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		return nil
	}
	if at, has := d.anchors[fragment]; has && !strings.HasPrefix(fragment, "/") && fragment != "" {
		return d.node(at)
	}
	return d.node(fragment)
}

// accepts reports whether v is valid for n, and the library's error if it is not. ok is false
// if that is not known.
func (d *document) accepts(n *node, v any) (valid, ok bool, why string) {
	if n.only != 0 {
		return typeOf(v)&n.only != 0, true, "the type"
	}
	if n.must != "" {
		object, isObject := v.(map[string]any)
		_, has := object[n.must]
		return !isObject || has, true, fmt.Sprintf("%q is missing", n.must)
	}
	if !n.tried {
		n.tried = true
		if schema, err := d.compiler.Compile(schemaURL + "#" + (&url.URL{Fragment: n.at}).EscapedFragment()); err == nil {
			n.compiled = schema
		}
	}
	if n.compiled == nil {
		return false, false, ""
	}
	err := n.compiled.Validate(v)
	if err == nil {
		return true, true, ""
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return false, false, ""
	}
	for len(invalid.Causes) > 0 {
		invalid = invalid.Causes[0]
	}
	keyword := invalid.KeywordLocation[strings.LastIndexByte(invalid.KeywordLocation, '/')+1:]
	return false, true, fmt.Sprintf("%s: %s", keyword, clip(invalid.Message, 120))
}

// sortedNames returns the keys of all the maps, without repeats.
func sortedNames(all ...map[string]any) []string {
	names := map[string]bool{}
	for _, m := range all {
		for name := range m {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// join appends a token to a JSON pointer (RFC 6901, section 3).
func join(at, token string) string {
	return at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(token)
}

func unescape(token string) string { return strings.NewReplacer("~1", "/", "~0", "~").Replace(token) }

// clip shortens an author's text for a message.
func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
