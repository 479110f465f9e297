package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

const (
	// draft202012 is the only allowed $schema.
	draft202012 = "https://json-schema.org/draft/2020-12/schema"
	// schemaURL is the compiler's URL of a parameter schema.
	schemaURL = "tool:///schema.json"

	maxSchemaBytes = 64 << 10
	// maxSchemaNodes and maxSchemaHeight limit a schema with all $refs replaced, which is the size of a provider's
	// form and of validation.
	maxSchemaNodes  = 5000
	maxSchemaHeight = 64
)

var errNothingOpened = errors.New("a schema must not refer to anything outside itself")

var formats = slices.Sorted(maps.Keys(stricter))

// Schema is a compiled schema of arguments or data. It is immutable and safe for concurrent use.
type Schema struct {
	// Doc is the decoded schema, which must not be changed.
	Doc  any
	Root *Node

	schema *jsonschema.Schema
	nodes  map[string]*Node // of the tree, by JSON pointer
}

// At returns the subschema at a JSON pointer, or nil.
func (p *Schema) At(place string) *Node { return p.nodes[place] }

// CompileParameters compiles the schema of a tool's arguments; nil with problems. It rejects schemas that are invalid
// in draft 2020-12, accept unknown properties, have external or recursive references, use an unknown format or
// keyword or a regular expression that RE2 doesn't support, are too deep or large, or have an invalid or unapplied
// default. Paths point into the schema.
func CompileParameters(raw json.RawMessage) (*Schema, []Problem) { return compile(raw, false) }

// compile compiles a schema; nil with problems. mayMap allows objects with arbitrary names.
func compile(raw json.RawMessage, mayMap bool) (*Schema, []Problem) {
	doc, problems, ok := Decode(raw, maxSchemaBytes, MaxSpecDepth)
	if !ok || len(problems) > 0 {
		return nil, problems
	}
	if _, isObject := doc.(map[string]any); !isObject {
		return nil, []Problem{{Message: "The parameters must be a JSON Schema object, such as {\"type\": \"object\", " +
			"\"properties\": {}, \"additionalProperties\": false}."}}
	}
	tree := &treeBuilder{nodes: map[string]*Node{}, measured: map[*Node]bool{}}
	root := tree.build(doc, nil)
	tree.link()
	tree.measure(root)
	all := inOrder(tree.nodes)
	for _, n := range all {
		tree.measure(n) // also unreferenced ones
	}
	check := &schemaCheck{problems: tree.problems, mayMap: mayMap}
	check.all(root, all)
	compiler, err := newCompiler(raw)
	compiler.Draft, compiler.AssertFormat, compiler.Formats = jsonschema.Draft2020, true, formatChecks()
	p := &Schema{Doc: doc, Root: root, nodes: tree.nodes}
	if err == nil {
		p.schema, err = compiler.Compile(schemaURL)
	}
	problems = mergeProblems(check.problems, problemsOf(err))
	if len(problems) == 0 {
		problems = p.finish(compiler, all)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return p, nil
}

func inOrder(nodes map[string]*Node) (all []*Node) {
	for _, place := range slices.Sorted(maps.Keys(nodes)) {
		all = append(all, nodes[place])
	}
	return all
}

// CompileForeign compiles a schema of another program, of any draft and with any keywords, for [Schema.Validate] alone. It
// returns nil if the schema does not compile, or refers to another document.
func CompileForeign(raw json.RawMessage) *Schema {
	doc, problems, ok := Decode(raw, maxSchemaBytes, MaxSpecDepth)
	if !ok || len(problems) > 0 {
		return nil
	}
	if compiler, err := newCompiler(raw); err == nil {
		if compiled, err := compiler.Compile(schemaURL); err == nil {
			return &Schema{Doc: doc, schema: compiled}
		}
	}
	return nil
}

func newCompiler(raw json.RawMessage) (*jsonschema.Compiler, error) {
	compiler := jsonschema.NewCompiler()
	compiler.LoadURL = func(url string) (io.ReadCloser, error) { return nil, fmt.Errorf("%w: %s", errNothingOpened, url) }
	return compiler, compiler.AddResource(schemaURL, bytes.NewReader(raw))
}

// problemsOf are those of an error of the compiler.
func problemsOf(err error) []Problem {
	if err == nil {
		return nil
	}
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return metaProblems(invalid)
	}
	return []Problem{{Message: "The schema does not compile: " + strings.TrimPrefix(err.Error(), "jsonschema "+schemaURL+" ") + "."}}
}

func metaProblems(e *jsonschema.ValidationError) (all []Problem) {
	for _, cause := range e.Causes {
		all = append(all, metaProblems(cause)...)
	}
	if len(e.Causes) == 0 {
		place, _ := ParseFragment(e.InstanceLocation)
		all = append(all, Problem{Path: place.String(),
			Message: "This is not valid in JSON Schema draft 2020-12: " + e.Message + "."})
	}
	return all
}

// mergeProblems merges our problems with the library's. Ours replace the library's at or below the same place,
// because they explain the fix.
func mergeProblems(ours, theirs []Problem) []Problem {
	if len(ours) > 0 {
		theirs = slices.DeleteFunc(theirs, func(p Problem) bool {
			return p.Path == "" || slices.ContainsFunc(ours, func(o Problem) bool {
				return o.Path == p.Path || strings.HasPrefix(o.Path, p.Path+"/")
			})
		})
	}
	return SortProblems(slices.Concat(ours, theirs))
}

// finish compiles the parts that are needed alone, and checks the defaults and examples.
func (p *Schema) finish(compiler *jsonschema.Compiler, all []*Node) []Problem {
	needed := map[*Node]bool{}
	for _, n := range all {
		needed[n] = needed[n] || n.hasDefault || len(n.examples()) > 0 || len(n.at) == 2 && n.at[0] == "properties"
		for _, list := range [][]*Node{n.AnyOf, n.OneOf} {
			if slices.ContainsFunc(list, func(choice *Node) bool { return choice.fills }) {
				for _, choice := range list {
					needed[choice] = true
				}
			}
		}
	}
	for _, n := range all {
		if !needed[n] {
			continue
		}
		var err error
		if n.compiled, err = compiler.Compile(schemaURL + "#" + n.at.fragment()); err != nil {
			return []Problem{{Path: n.at.String(), Message: "This part of the schema does not compile on its own: " + err.Error() + "."}}
		}
	}
	var problems []Problem
	for _, n := range all {
		if n.hasDefault {
			problems = append(problems, p.fits(n, n.at.With("default"), "default", n.value)...)
		}
		for i, v := range n.examples() {
			problems = append(problems, p.fits(n, n.at.With("examples").Index(i), "example", v)...)
		}
	}
	return problems
}

func (p *Schema) fits(n *Node, place Pointer, what string, v any) []Problem {
	value := Clone(v)
	f := filler{}
	f.fill(n, value, nil)
	err := n.compiled.Validate(value)
	if err == nil {
		return nil
	}
	why := (&Schema{Doc: p.Doc, schema: n.compiled}).explain(err, value)[0]
	return []Problem{{Path: place.String(),
		Message: fmt.Sprintf("The %s %s does not fit its own schema: %s. Change the %s or the schema.",
			what, Show(v), strings.TrimSpace(why.Path+" "+strings.TrimSuffix(why.Message, ".")), what)}}
}

type treeBuilder struct {
	nodes    map[string]*Node // by JSON pointer
	problems []Problem
	measured map[*Node]bool // false while it is being measured
}

// build makes the nodes of a schema and of its subschemas. Values of the wrong type are
// left to the meta-schema.
func (b *treeBuilder) build(v any, place Pointer) *Node {
	n := &Node{at: place}
	switch v := v.(type) {
	case bool:
		n.yes = v
	case map[string]any:
		n.Doc = v
	default:
		n.yes = true
		return n
	}
	b.nodes[place.String()] = n
	n.value, n.hasDefault = n.Doc["default"]
	if sub, ok := n.Doc["additionalProperties"]; ok {
		n.extra = b.build(sub, place.With("additionalProperties"))
	}
	if sub, ok := n.Doc["items"]; ok {
		n.Items = b.build(sub, place.With("items"))
	}
	for keyword, into := range map[string]*[]*Node{"allOf": &n.AllOf, "anyOf": &n.AnyOf, "oneOf": &n.OneOf} {
		list, _ := n.Doc[keyword].([]any)
		for i, sub := range list {
			*into = append(*into, b.build(sub, place.With(keyword).Index(i)))
		}
	}
	defs, _ := n.Doc["$defs"].(map[string]any)
	for name, sub := range defs {
		b.build(sub, place.With("$defs", name)) // reached only by $ref
	}
	properties, _ := n.Doc["properties"].(map[string]any)
	n.Names = slices.Sorted(maps.Keys(properties))
	n.Props = make(map[string]*Node, len(properties))
	for name, sub := range properties {
		n.Props[name] = b.build(sub, place.With("properties", name))
	}
	return n
}

func (b *treeBuilder) link() {
	for _, n := range inOrder(b.nodes) {
		ref, ok := n.Doc["$ref"].(string)
		if !ok {
			continue
		}
		path := n.at.With("$ref").String()
		target, isLocal := strings.CutPrefix(ref, "#")
		if !isLocal {
			b.problems = append(b.problems, Problem{Path: path,
				Message: fmt.Sprintf("$ref %q leads out of this file, and no other file is read; copy its target into $defs and "+
					"write \"#/$defs/…\".", Shorten(ref, 100))})
			continue
		}
		if p, ok := ParseFragment(target); ok {
			n.Ref = b.nodes[p.String()]
		}
		if n.Ref == nil {
			b.problems = append(b.problems, Problem{Path: path,
				Message: fmt.Sprintf("$ref %q does not refer to a schema of this file; write \"#/$defs/…\" with a name from "+
					"$defs.", Shorten(ref, 100))})
		}
	}
}

func (b *treeBuilder) measure(n *Node) {
	if done, seen := b.measured[n]; done {
		return
	} else if seen {
		b.problems = append(b.problems, Problem{Path: n.at.String(),
			Message: "This schema contains itself through $ref, which no provider supports; write out as many levels as needed."})
		return
	}
	b.measured[n] = false
	n.nodes, n.height, n.fills = 1, 1, n.hasDefault
	children := n.filled()
	if n.extra != nil {
		children = append(children, n.extra)
	}
	for _, child := range children {
		b.measure(child)
		n.fills = n.fills || child.fills && child != n.extra
		n.nodes = min(n.nodes+child.nodes, maxSchemaNodes+1)
		n.height = max(n.height, child.height+1)
	}
	b.measured[n] = true
}

// The forms of RFC 3339 section 5.6, as regular expressions.
const (
	dateForm = `[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])`
	timeForm = `([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?([zZ]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])`
)

var (
	timeOnly = regexp.MustCompile(`^` + timeForm + `$`)
	dateTime = regexp.MustCompile(`^` + dateForm + `[tT]` + timeForm + `$`)
)

// stricter are the formats that all providers and validators understand. Each has the library's check, and a function
// that rejects texts that other parsers reject, such as the signs in 10:+5:00Z and +1.2.3.4.
var stricter = map[string]func(string) bool{
	"date": nil, "email": nil, "ipv6": nil, "uri": nil, "uuid": nil,
	"time":      timeOnly.MatchString,
	"date-time": dateTime.MatchString,
	"ipv4": func(s string) bool {
		a, err := netip.ParseAddr(s)
		return err == nil && a.Is4()
	},
}

func formatChecks() map[string]func(any) bool {
	checks := map[string]func(any) bool{}
	for name, more := range stricter {
		library := jsonschema.Formats[name]
		checks[name] = func(v any) bool {
			s, text := v.(string)
			return !text || library(v) && (more == nil || more(s))
		}
	}
	return checks
}

// CompileOutput compiles the schema of a tool's data; nil with problems. The rules are those of [CompileParameters],
// but defaults are not allowed, and objects below the root without properties may be maps: additionalProperties is a
// schema, or true.
func CompileOutput(raw json.RawMessage) (*Schema, []Problem) {
	p, problems := compile(raw, true)
	for i := range problems {
		problems[i].Message = strings.NewReplacer("The parameters must be", "The output must be", "omits \"parameters\"",
			"omits \"output\"", "A tool without arguments", "A tool whose data is not described").Replace(problems[i].Message)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	for _, n := range inOrder(p.nodes) {
		if p.Root.fills && n.hasDefault {
			return nil, []Problem{{Path: n.at.With("default").String(),
				Message: "A default in the output has no effect, because answers are sent unchanged. Remove it."}}
		}
	}
	return p, nil
}

// Emptied replaces null in a decoded value with an empty list or object where the schema wants a list or map, in
// place.
func (p *Schema) Emptied(v any) (filled any, changed bool) {
	filled = p.Root.emptied(v, &changed)
	return filled, changed
}

func (n *Node) emptied(v any, changed *bool) any {
	for n.Ref != nil && len(n.Types()) == 0 {
		n = n.Ref
	}
	switch v := v.(type) {
	case nil: // Go encodes nil slices and maps as null
		types := n.Types()
		isList := len(types) == 1 && types[0] == "array"
		isMap := len(types) == 1 && types[0] == "object" && n.mapped()
		*changed = *changed || isList || isMap
		if isList {
			return []any{}
		}
		if isMap {
			return map[string]any{}
		}
	case map[string]any:
		for name, inside := range v {
			if child := n.Props[name]; child != nil {
				v[name] = child.emptied(inside, changed)
			} else if n.mapped() {
				v[name] = n.extra.emptied(inside, changed)
			}
		}
	case []any:
		for i := range v {
			if n.Items != nil {
				v[i] = n.Items.emptied(v[i], changed)
			}
		}
	}
	return v
}
