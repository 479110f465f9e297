package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"voicegw/registry/format"
)

const (
	// draft202012 is the only value that $schema may have.
	draft202012 = "https://json-schema.org/draft/2020-12/schema"
	// schemaURL is the address under which the compiler knows a parameter schema.
	schemaURL = "tool:///schema.json"

	maxSchemaBytes = 64 << 10
	// maxSchemaNodes and maxSchemaHeight bound a schema in which every $ref is replaced by its
	// target: this is the size of a provider's form and of a walk by validation.
	maxSchemaNodes  = 5000
	maxSchemaHeight = 64
)

// formats are the values of "format" that every provider and validator understands.
var formats = format.Names()

// node is one subschema of a parameter schema, in a tree with links for $ref: defaults
// and checks walk it. It is fixed once the schema is compiled.
type node struct {
	at  pointer
	doc map[string]any // nil for true and false
	yes bool           // for a schema without doc: true or false

	props         map[string]*node
	names         []string // of props, sorted
	prefix        []*node
	items         *node
	ref           *node
	allOf         []*node
	anyOf, oneOf  []*node
	patterned     []*node // patternProperties
	extra         *node   // additionalProperties; also one of others
	others        []*node // every other subschema: defaults are not applied in there
	value         any     // its default
	hasDefault    bool
	fills         bool // there are defaults at or below it
	nodes, height int  // with every $ref replaced

	// compiled is set for a property of the root, for a schema with a default or examples, and
	// for every choice of an anyOf or oneOf that contains a default, to find the chosen one.
	compiled *jsonschema.Schema
}

// parameters is a compiled parameter schema; safe for concurrent use.
type parameters struct {
	doc    any
	root   *node
	schema *jsonschema.Schema
}

// compileParameters checks and compiles a parameter schema; nil if there are problems.
func compileParameters(raw json.RawMessage) (*parameters, []Problem) { return compile(raw, false) }

// compile checks and compiles a schema; nil if there are problems. mayMap says that an object may let in
// names that nobody knows beforehand.
func compile(raw json.RawMessage, mayMap bool) (*parameters, []Problem) {
	doc, problems, ok := decodeStrict(raw, maxSchemaBytes, maxSpecDepth)
	if !ok || len(problems) > 0 {
		return nil, problems
	}
	if _, isObject := doc.(map[string]any); !isObject {
		return nil, []Problem{{Message: "The parameters are a JSON Schema object, such as {\"type\": \"object\", \"properties\": {}, \"additionalProperties\": false}."}}
	}
	tree := &treeBuilder{nodes: map[string]*node{}}
	root := tree.build(doc, nil)
	tree.link()
	tree.measure(root)
	tree.measureAll() // also those to which nothing refers
	check := &schemaCheck{problems: tree.problems, mayMap: mayMap}
	check.all(tree, root)
	compiler, schema, compileProblems := compileSchema(raw)
	problems = mergeProblems(check.problems, compileProblems)
	if len(problems) > 0 {
		return nil, problems
	}
	p := &parameters{doc: doc, root: root, schema: schema}
	if problems := p.finish(compiler, tree); len(problems) > 0 {
		return nil, problems
	}
	return p, nil
}

// compileSchema lets the library compile raw; it cannot open any other document.
func compileSchema(raw json.RawMessage) (*jsonschema.Compiler, *jsonschema.Schema, []Problem) {
	compiler := jsonschema.NewCompiler()
	compiler.Draft = jsonschema.Draft2020
	compiler.AssertFormat, compiler.Formats = true, format.Checks()
	compiler.LoadURL = func(url string) (io.ReadCloser, error) {
		return nil, fmt.Errorf("%w: %s", errNothingOpened, url)
	}
	if err := compiler.AddResource(schemaURL, bytes.NewReader(raw)); err != nil {
		return nil, nil, []Problem{{Message: "This is not valid JSON: " + err.Error() + "."}}
	}
	schema, err := compiler.Compile(schemaURL)
	if err == nil {
		return compiler, schema, nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return nil, nil, []Problem{{Message: "The schema does not compile: " + strings.TrimPrefix(err.Error(), "jsonschema "+schemaURL+" ") + "."}}
	}
	var problems []Problem
	for _, leaf := range leaves(invalid) {
		place, _ := parseFragment(leaf.InstanceLocation)
		problems = append(problems, Problem{Path: place.String(), Message: "This is not as JSON Schema draft 2020-12 has it: " + leaf.Message + "."})
	}
	return nil, nil, problems
}

// leaves returns the errors that have no causes of their own.
func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var all []*jsonschema.ValidationError
	for _, cause := range e.Causes {
		all = append(all, leaves(cause)...)
	}
	return all
}

// mergeProblems merges our problems with the library's: if both concern one place or
// something inside it, only ours is kept, because it says how to fix it.
func mergeProblems(ours, theirs []Problem) []Problem {
	if len(ours) > 0 {
		theirs = slices.DeleteFunc(theirs, func(p Problem) bool {
			return p.Path == "" || slices.ContainsFunc(ours, func(o Problem) bool {
				return o.Path == p.Path || strings.HasPrefix(o.Path, p.Path+"/")
			})
		})
	}
	return sortProblems(slices.Concat(ours, theirs))
}

// sortProblems sorts by path and removes repeats.
func sortProblems(problems []Problem) []Problem {
	slices.SortFunc(problems, func(a, b Problem) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		return strings.Compare(a.Message, b.Message)
	})
	return slices.Compact(problems)
}

// finish compiles the choices that defaults need, and checks every default.
func (p *parameters) finish(compiler *jsonschema.Compiler, tree *treeBuilder) []Problem {
	var problems []Problem
	needed := map[*node]bool{}
	for _, n := range tree.nodes {
		needed[n] = needed[n] || n.hasDefault || len(n.examples()) > 0 || len(n.at) == 2 && n.at[0] == "properties"
		for _, list := range [][]*node{n.anyOf, n.oneOf} {
			if slices.ContainsFunc(list, func(choice *node) bool { return choice.fills }) {
				for _, choice := range list {
					needed[choice] = true
				}
			}
		}
	}
	for _, place := range slices.Sorted(maps.Keys(tree.nodes)) {
		n := tree.nodes[place]
		if !needed[n] {
			continue
		}
		compiled, err := compiler.Compile(schemaURL + "#" + fragment(n.at))
		if err != nil {
			problems = append(problems, Problem{Path: place, Message: "This part of the schema does not compile on its own: " + err.Error() + "."})
			continue
		}
		n.compiled = compiled
	}
	if len(problems) > 0 {
		return problems
	}
	for _, place := range slices.Sorted(maps.Keys(tree.nodes)) {
		n := tree.nodes[place]
		if n.hasDefault {
			problems = append(problems, p.fits(n, n.at.with("default"), "default", n.value)...)
		}
		for i, v := range n.examples() {
			problems = append(problems, p.fits(n, n.at.with("examples").index(i), "example", v)...)
		}
	}
	return problems
}

// fits reports a default or example of n that n itself does not accept, defaults filled in.
func (p *parameters) fits(n *node, place pointer, what string, v any) []Problem {
	value := cloneJSON(v)
	f := filler{}
	f.fill(n, value, nil)
	err := n.compiled.Validate(value)
	if err == nil {
		return nil
	}
	why := (&parameters{doc: p.doc, schema: n.compiled}).explain(err, value)[0]
	return []Problem{{Path: place.String(), Message: fmt.Sprintf("The %s %s does not fit its own schema: %s. Change the %s or the schema.",
		what, show(v), strings.TrimSpace(why.Path+" "+strings.TrimSuffix(why.Message, ".")), what)}}
}

// examples returns the examples that the schema gives.
func (n *node) examples() []any {
	list, _ := n.doc["examples"].([]any)
	return list
}

// fragment writes a pointer as a URL's fragment.
func fragment(p pointer) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/$"
	var b strings.Builder
	for _, c := range []byte(p.String()) {
		if strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// treeBuilder makes the nodes of a document, and then their links.
type treeBuilder struct {
	nodes    map[string]*node // by JSON pointer
	problems []Problem
	measured map[*node]bool // false while it is being measured
}

// The places of subschemas, by keyword.
var (
	schemaKeywords     = []string{"additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
	schemaListKeywords = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	schemaMapKeywords  = []string{"$defs", "dependentSchemas", "patternProperties", "properties"}
)

// build makes the nodes of a schema and of its subschemas. Values of the wrong type are
// left to the meta-schema.
func (b *treeBuilder) build(v any, place pointer) *node {
	n := &node{at: place}
	switch v := v.(type) {
	case bool:
		n.yes = v
	case map[string]any:
		n.doc = v
	default:
		n.yes = true
		return n
	}
	b.nodes[place.String()] = n
	n.value, n.hasDefault = n.doc["default"]
	for _, keyword := range schemaKeywords {
		if sub, ok := n.doc[keyword]; ok {
			child := b.build(sub, place.with(keyword))
			switch keyword {
			case "items":
				n.items = child
			case "additionalProperties":
				n.extra = child
				n.others = append(n.others, child)
			default:
				n.others = append(n.others, child)
			}
		}
	}
	for _, keyword := range schemaListKeywords {
		list, _ := n.doc[keyword].([]any)
		for i, sub := range list {
			child := b.build(sub, place.with(keyword).index(i))
			switch keyword {
			case "allOf":
				n.allOf = append(n.allOf, child)
			case "anyOf":
				n.anyOf = append(n.anyOf, child)
			case "oneOf":
				n.oneOf = append(n.oneOf, child)
			case "prefixItems":
				n.prefix = append(n.prefix, child)
			}
		}
	}
	for _, keyword := range schemaMapKeywords {
		b.buildMap(n, keyword)
	}
	return n
}

func (b *treeBuilder) buildMap(n *node, keyword string) {
	m, _ := n.doc[keyword].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		child := b.build(m[name], n.at.with(keyword, name))
		switch keyword {
		case "properties":
			if n.props == nil {
				n.props = map[string]*node{}
			}
			n.props[name] = child
			n.names = append(n.names, name)
		case "patternProperties":
			n.patterned = append(n.patterned, child)
		case "$defs": // reached only by $ref
		default:
			n.others = append(n.others, child)
		}
	}
}

// link resolves every $ref.
func (b *treeBuilder) link() {
	for _, place := range slices.Sorted(maps.Keys(b.nodes)) {
		n := b.nodes[place]
		ref, ok := n.doc["$ref"].(string)
		if !ok {
			continue
		}
		path := n.at.with("$ref").String()
		target, isLocal := strings.CutPrefix(ref, "#")
		if !isLocal {
			b.problems = append(b.problems, Problem{Path: path,
				Message: fmt.Sprintf("$ref %q leads out of this file, and nothing else is ever opened; copy what it refers to into $defs and write \"#/$defs/…\".", shorten(ref, 100))})
			continue
		}
		if p, ok := parseFragment(target); ok {
			n.ref = b.nodes[p.String()]
		}
		if n.ref == nil {
			b.problems = append(b.problems, Problem{Path: path,
				Message: fmt.Sprintf("$ref %q refers to no schema of this file; write \"#/$defs/…\" with a name that $defs has.", shorten(ref, 100))})
		}
	}
}

func (b *treeBuilder) measureAll() {
	for _, place := range slices.Sorted(maps.Keys(b.nodes)) {
		b.measure(b.nodes[place])
	}
}

// measure sets nodes, height and fills of n and all nodes below it, and finds cycles.
func (b *treeBuilder) measure(n *node) {
	if b.measured == nil {
		b.measured = map[*node]bool{}
	}
	if done, seen := b.measured[n]; done {
		return
	} else if seen {
		b.problems = append(b.problems, Problem{Path: n.at.String(),
			Message: "This schema contains itself by way of $ref, so that no provider's form can hold it; write the levels out, as many as are needed."})
		return
	}
	b.measured[n] = false
	n.nodes, n.height, n.fills = 1, 1, n.hasDefault
	for _, child := range n.filled() {
		b.measure(child)
		n.fills = n.fills || child.fills
	}
	for _, child := range slices.Concat(n.filled(), n.patterned, n.others) {
		b.measure(child)
		n.nodes = min(n.nodes+child.nodes, maxSchemaNodes+1)
		n.height = max(n.height, child.height+1)
	}
	b.measured[n] = true
}

// filled returns the subschemas in which defaults are applied.
func (n *node) filled() []*node {
	all := make([]*node, 0, len(n.names)+len(n.prefix)+len(n.allOf)+len(n.anyOf)+len(n.oneOf)+2)
	for _, name := range n.names {
		all = append(all, n.props[name])
	}
	all = slices.Concat(all, n.prefix, n.allOf, n.anyOf, n.oneOf)
	for _, one := range []*node{n.items, n.ref} {
		if one != nil {
			all = append(all, one)
		}
	}
	return all
}
