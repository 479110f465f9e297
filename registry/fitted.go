package registry

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"voicegw/registry/adapter"
	"voicegw/registry/document"
)

// Fitted turns arguments of a fitted schema into those of the original schema. It is immutable.
type Fitted struct {
	texts []string          // the properties that models write as JSON text, sorted
	names map[string]string // the original names of those that have another one
	// schema is the original; nil if it does not compile here or only the other side checks its arguments.
	schema *document.Schema
}

var (
	errNotObject = errors.New(`its root must be an object with "type": "object"`)
	errNoForm    = errors.New("no part of it can be expressed for the providers")
)

// maxRepairs bounds the parts of a schema that are taken out one after another.
const maxRepairs = 200

// Fit makes a schema that the registry and every provider accept from a foreign one. It accepts all arguments that the
// foreign schema accepts, except unknown properties. losses are sentences about the parts that it does not express.
func Fit(raw json.RawMessage) (f *Fitted, fitted json.RawMessage, losses []string, err error) {
	v, problems, ok := document.Decode(raw, adapter.MaxBytes, document.MaxSpecDepth)
	root, isObject := v.(map[string]any)
	switch {
	case !ok || len(problems) > 0:
		return nil, nil, nil, errors.New(problems[0].String()) //nolint:err113 // a problem of the schema's text
	case !isObject || root["type"] != "object":
		return nil, nil, nil, errNotObject
	}
	a := &simplifier{root: document.Clean(root).(map[string]any)} //nolint:forcetypeassert // Clean keeps the type
	a.oldWords()
	a.branches()
	a.tidy(a.root)
	for range maxRepairs {
		text := document.AppendCanonical(nil, a.root)
		problems := a.check(text)
		if len(problems) == 0 {
			slices.Sort(a.texts)
			slices.Sort(a.losses)
			return &Fitted{texts: a.texts, names: a.names, schema: document.CompileForeign(raw)}, text, slices.Compact(a.losses), nil
		}
		if !a.repair(problems[0]) {
			return nil, nil, nil, fmt.Errorf("%w: %s", errNoForm, problems[0])
		}
	}
	return nil, nil, nil, errNoForm
}

type simplifier struct {
	root   map[string]any
	texts  []string
	names  map[string]string
	losses []string
}

func (a *simplifier) lose(format string, args ...any) {
	a.losses = append(a.losses, fmt.Sprintf(format, args...))
}

func (a *simplifier) check(text []byte) []document.Problem {
	if _, problems := document.CompileParameters(text); len(problems) > 0 {
		return problems
	}
	_, _, err := adapter.All(text)
	return formProblems(err)
}

// formProblems returns the problems of an error of [adapter.All].
func formProblems(err error) (problems []document.Problem) {
	found, ok := errors.AsType[adapter.Problems](err)
	if !ok && err != nil {
		return []document.Problem{{Message: err.Error()}}
	}
	for _, p := range found {
		problems = append(problems, document.Problem{Path: p.Path, Message: p.Message})
	}
	return problems
}

// oldWords renames definitions, as older drafts call $defs.
func (a *simplifier) oldWords() {
	if defs, has := a.root["definitions"]; has {
		if _, both := a.root["$defs"]; !both {
			a.root["$defs"] = defs
		}
		delete(a.root, "definitions")
	}
	delete(a.root, "$schema")
	delete(a.root, "$id")
}

// branches joins alternatives at the root, which providers refuse, into the root's properties.
func (a *simplifier) branches() {
	properties, _ := a.root["properties"].(map[string]any)
	if properties == nil {
		properties = map[string]any{}
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, has := a.root[key].([]any)
		if !has {
			continue
		}
		for _, branch := range list {
			object, _ := branch.(map[string]any)
			more, _ := object["properties"].(map[string]any)
			for name, property := range more {
				before, has := properties[name]
				if has && !bytes.Equal(document.AppendCanonical(nil, before), document.AppendCanonical(nil, property)) {
					a.asText(properties, name)
				} else {
					properties[name] = property
				}
			}
		}
		delete(a.root, key)
		a.lose("The schema says in %q which arguments belong together; the server checks that.", key)
	}
	a.root["properties"] = properties
}

// tidy closes objects and translates keywords of other dialects, in all parts of a schema.
func (a *simplifier) tidy(schema any) {
	n, is := schema.(map[string]any)
	if !is {
		return
	}
	if ref, is := n["$ref"].(string); is {
		n["$ref"] = strings.Replace(ref, "#/definitions/", "#/$defs/", 1)
	}
	if n["nullable"] == true {
		if typ, is := n["type"].(string); is {
			n["type"] = []any{typ, "null"}
		}
	}
	delete(n, "nullable")
	if _, has := n["properties"]; has {
		if extra, has := n["additionalProperties"]; has && extra != false {
			a.lose("Only the properties that are listed can be used.")
		}
		n["additionalProperties"] = false
	}
	for key, value := range n {
		switch k, _ := document.KeywordNamed(key); k.Holds {
		case document.HoldsSchema:
			a.tidy(value)
		case document.HoldsList:
			list, _ := value.([]any)
			for _, child := range list {
				a.tidy(child)
			}
		case document.HoldsMap:
			named, _ := value.(map[string]any)
			for _, child := range named {
				a.tidy(child)
			}
		}
	}
}

// repair takes out the part of the schema that has a problem, so that it accepts more. It returns false if no part is
// left to take out.
func (a *simplifier) repair(p document.Problem) bool {
	at, ok := document.ParsePointer(p.Path)
	if !ok {
		return false
	}
	n, place := a.root, 0
	for place < len(at) {
		key := at[place]
		k, _ := document.KeywordNamed(key)
		if k.Holds == document.HoldsNone && key != "type" && key != "$ref" { // the schema then accepts more
			if _, has := n[key]; !has {
				break
			}
			delete(n, key)
			a.lose("%s: %q is left out.", cmp.Or(at[:place].String(), "The schema"), key)
			return true
		}
		step := 1
		if k.Holds != document.HoldsSchema && k.Holds != document.HoldsNone {
			step = 2
		}
		next, found := document.At(n, at[place:min(place+step, len(at))])
		child, is := next.(map[string]any)
		if !found || !is {
			break
		}
		n, place = child, place+step
	}
	properties, _ := a.root["properties"].(map[string]any)
	if len(at) == 2 && at[0] == "properties" && properties[at[1]] != nil && !adapter.TakesName(at[1]) {
		a.rename(properties, at[1])
		return true
	}
	if len(at) >= 2 && at[0] == "properties" && !slices.Contains(a.texts, at[1]) && properties[at[1]] != nil {
		a.asText(properties, at[1])
		return true
	}
	return a.withoutDefs(properties)
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// rename gives a property a name that providers take.
func (a *simplifier) rename(properties map[string]any, name string) {
	fit := notInName.ReplaceAllString(name, "_")
	if !adapter.TakesName(fit) {
		fit = "a_" + fit[:min(len(fit), 50)]
	}
	for base, n := fit, 2; properties[fit] != nil; n++ {
		fit = fmt.Sprintf("%.50s_%d", base, n)
	}
	properties[fit] = properties[name]
	delete(properties, name)
	if i := slices.Index(a.texts, name); i >= 0 {
		a.texts[i] = fit
	}
	required, _ := a.root["required"].([]any)
	for i := range required {
		if required[i] == name {
			required[i] = fit
		}
	}
	if a.names == nil {
		a.names = map[string]string{}
	}
	a.names[fit] = name
	a.lose("%s is called %s.", name, fit)
}

// withoutDefs replaces the properties that refer to definitions, for problems of those.
func (a *simplifier) withoutDefs(properties map[string]any) bool {
	if _, has := a.root["$defs"]; !has {
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if bytes.Contains(document.AppendCanonical(nil, properties[name]), []byte(`"$ref"`)) {
			a.asText(properties, name)
		}
	}
	delete(a.root, "$defs")
	return true
}

// asText replaces a property by a text that holds its JSON.
func (a *simplifier) asText(properties map[string]any, name string) {
	said := ""
	if object, is := properties[name].(map[string]any); is {
		said, _ = object["description"].(string)
	}
	properties[name] = map[string]any{"type": "string", "description": strings.TrimSpace(said + " Write it as JSON.")}
	if !slices.Contains(a.texts, name) {
		a.texts = append(a.texts, name)
		a.lose("%s is written as JSON text.", name)
	}
}

// Decode returns the arguments for the original schema. The problems are those of the arguments.
func (a *Fitted) Decode(raw json.RawMessage) (map[string]any, []document.Problem) {
	v, problems, ok := document.Decode(raw, document.MaxArgsBytes, document.MaxArgsDepth)
	if !ok || len(problems) > 0 {
		return nil, problems
	}
	args, _ := v.(map[string]any)
	for _, name := range a.texts {
		text, is := args[name].(string)
		if !is {
			continue
		}
		value, problems, ok := document.Decode([]byte(text), document.MaxArgsBytes, document.MaxArgsDepth)
		if !ok || len(problems) > 0 {
			return nil, []document.Problem{{Path: document.Pointer{name}.String(), Message: "It must be JSON."}}
		}
		args[name] = value
	}
	for fit, name := range a.names {
		if value, has := args[fit]; has {
			args[name] = value
			delete(args, fit)
		}
	}
	if a.schema == nil {
		return args, nil
	}
	if problems := a.schema.Validate(args); len(problems) > 0 {
		return nil, problems
	}
	return args, nil
}
