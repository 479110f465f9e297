package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"voicegw/internal/textutil"
)

// parseFile parses a YAML file. It walks the nodes itself, because the decoder doesn't report keys and lines.
func (l *loader) parseFile(name string, data []byte) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return // an empty file, or only comments
	}
	if err != nil {
		l.syntax(name, err)
		return
	}
	var second yaml.Node
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		line := second.Line
		if err != nil {
			l.syntax(name, err)
			return
		}
		l.problems.Add(at(name, line), "The file has a second document (after ---); put all settings into one.")
	}
	w := walker{loader: l, name: name}
	w.section("", document.Content[0])
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

func (l *loader) syntax(name string, err error) {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	where := name
	if m := yamlLine.FindStringSubmatchIndex(message); m != nil {
		where += ":" + message[m[2]:m[3]]
		message = message[:m[0]] + message[m[1]:]
	}
	l.problems.Add(where, "The file is not YAML: %s.", message)
}

func at(name string, line int) string { return name + ":" + strconv.Itoa(line) }

type walker struct {
	loader *loader
	name   string
}

func (w walker) problem(n *yaml.Node, format string, args ...any) {
	w.loader.problems.Add(at(w.name, n.Line), format, args...)
}

func (w walker) section(prefix string, n *yaml.Node) {
	n = resolve(n)
	if n.Tag == "!!null" {
		return // a heading with only comments
	}
	if n.Kind != yaml.MappingNode {
		what := "The file"
		if prefix != "" {
			what = strings.TrimSuffix(prefix, ".")
			w.loader.unusable[what] = true
		}
		w.problem(n, "%s must have settings, one per line as \"name: value\", not %s.", what, kindName(n))
		return
	}
	names := w.loader.children(prefix)
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		isNew := !slices.Contains(names, key.Value)
		if in := namedAt(prefix); isNew && in != nil && resolve(value).Kind == yaml.MappingNode {
			isNew = !w.loader.introduce(in, key.Value)
		}
		switch first, twice := seen[key.Value]; {
		case isNew || key.Kind != yaml.ScalarNode:
			w.unknown(prefix, key, names)
		case twice:
			w.problem(key, "%s is set twice (first in line %d); remove one.", prefix+key.Value, first)
		case len(w.loader.children(prefix+key.Value+".")) > 0, namedAt(prefix+key.Value+".") != nil:
			w.section(prefix+key.Value+".", value)
		default:
			w.leaf(prefix+key.Value, key, value)
		}
		if _, twice := seen[key.Value]; !twice {
			seen[key.Value] = key.Line
		}
	}
}

func (w walker) unknown(prefix string, key *yaml.Node, names []string) {
	if key.Kind != yaml.ScalarNode {
		w.problem(key, "A name must be a word, not %s.", kindName(key))
		return
	}
	meant := textutil.Nearest(key.Value, names)
	if meant != "" {
		meant = prefix + meant
	} else {
		for _, known := range w.loader.keys {
			if strings.HasSuffix(known, "."+key.Value) {
				meant = known
				break
			}
		}
	}
	hint := didYouMean(meant)
	if in := namedAt(prefix); in != nil && hint == "" {
		hint = " The name of a " + in.what + " has letters from a to z, digits and hyphens, and its settings follow in a section."
	}
	if hint == "" {
		hint = " The names here are: " + strings.Join(names, ", ") + "."
	}
	w.problem(key, "There is no setting %s.%s", quote(prefix+key.Value), hint)
}

func (w walker) leaf(key string, keyNode, n *yaml.Node) {
	n = resolve(n)
	f := w.loader.fields[key]
	list, isList := f.value.Addr().Interface().(*[]string)
	pairs, isPairs := f.value.Addr().Interface().(*Certificates)
	before := len(w.loader.problems)
	defer func() {
		if len(w.loader.problems) > before {
			w.loader.unusable[key] = true
		}
	}()
	switch {
	case n.Tag == "!!null":
		w.problem(keyNode, "%s has no value; give one, or remove the line for the default.", key)
	case isList && n.Kind == yaml.SequenceNode:
		w.list(key, n, list)
	case isPairs && n.Kind == yaml.SequenceNode:
		w.certificates(key, n, pairs)
	case n.Kind != yaml.ScalarNode && (isList || isPairs):
		w.problem(n, "%s must be a list, not %s.", key, kindName(n))
	case n.Kind != yaml.ScalarNode:
		w.problem(n, "%s must be a single value, not %s.", key, kindName(n))
	default:
		w.loader.set(at(w.name, n.Line), key, n.Value)
	}
}

func (w walker) list(key string, n *yaml.Node, out *[]string) {
	items := []string{}
	for _, item := range n.Content {
		item = resolve(item)
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
			w.problem(item, "%s must be a list of texts; this entry is %s.", key, kindName(item))
			continue
		}
		items = append(items, item.Value)
	}
	*out = items
	w.loader.where[key] = at(w.name, n.Line)
}

// resolve follows an alias, which the parser has checked.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a section"
	case yaml.SequenceNode:
		return "a list"
	default:
		if n.Tag == "!!null" {
			return "empty"
		}
		return fmt.Sprintf("the value %s", quote(n.Value))
	}
}

func (l *loader) children(prefix string) []string {
	var names []string
	add := func(key string) {
		rest, ok := strings.CutPrefix(key, prefix)
		name, _, _ := strings.Cut(rest, ".")
		if ok && name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, key := range l.keys {
		add(key)
	}
	for _, in := range namedSections {
		add(in.prefix)
	}
	return names
}
