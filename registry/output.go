package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"voicegw/prompts/toolerror"
)

// CheckOutput reports what is wrong with a schema of a tool's data. The rules are those of
// [CheckParameters], except that nothing in it may have a default, and that an object below the root
// that names no properties may be a map: its additionalProperties are a schema, or true.
func CheckOutput(schema json.RawMessage) []Problem {
	_, problems := compileOutput(schema)
	return problems
}

// compileOutput checks and compiles the schema of a tool's data; nil if there are problems.
func compileOutput(raw json.RawMessage) (*parameters, []Problem) {
	p, problems := compile(raw, true)
	for i := range problems {
		problems[i].Message = strings.NewReplacer("The parameters are", "The output is", "leaves \"parameters\" out", "leaves \"output\" out", "A tool that takes no arguments", "A tool whose data is not described").Replace(problems[i].Message)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	if place := p.root.findDefault(); place != nil {
		return nil, []Problem{{Path: place.String(), Message: "A default in the output has no effect: nothing is filled into what a tool answers. Remove it."}}
	}
	return p, nil
}

// findDefault returns the place of the first default at or below n; nil if nothing there has a default.
func (n *node) findDefault() pointer {
	if !n.fills {
		return nil
	}
	if n.hasDefault {
		return n.at.with("default")
	}
	for _, child := range n.filled() {
		if place := child.findDefault(); place != nil {
			return place
		}
	}
	return nil
}

// output reads the schema of the tool's data.
func (r *specReader) output(raw json.RawMessage) (json.RawMessage, *parameters) {
	if _, has := r.object["output"]; !has {
		return nil, nil
	}
	compiled, problems := compileOutput(raw)
	for _, p := range problems {
		r.problems = append(r.problems, Problem{Path: "/output" + p.Path, Message: p.Message})
	}
	return raw, compiled
}

// errOutput says that a result is not what the tool's own schema says; only for the log.
var errOutput = errors.New("the handler's result breaks the tool's own output schema")

// fitOutput returns the data as the tool's output schema has it: a nil slice of Go is an empty list, and a
// nil map an empty object. If
// it does not fit, the outcome is the answer instead: INTERNAL, with the places in its details. The log
// gets the places and no values.
func (t *Tool) fitOutput(data json.RawMessage, most int) (json.RawMessage, *outcome) {
	schema := t.compiled.output
	if schema == nil {
		return data, nil
	}
	value, problems, _ := decodeStrict(data, most, maxSpecDepth)
	var lists lister
	if len(problems) == 0 {
		value = lists.fill(schema.root, value)
		if err := schema.schema.Validate(value); err != nil {
			problems = schema.explain(err, value)
		}
	}
	switch {
	case len(problems) > 0:
		return nil, t.brokenOutput(problems)
	case lists.changed:
		return appendCanonical(make([]byte, 0, len(data)), value), nil
	}
	return data, nil
}

// brokenOutput is the outcome of a call whose data does not fit.
func (t *Tool) brokenOutput(problems []Problem) *outcome {
	more := max(0, len(problems)-maxArgProblems)
	problems = problems[:len(problems)-more]
	var places []string
	for _, p := range problems {
		place := p.Path
		if place == "" {
			place = "the data as a whole"
		}
		places = append(places, shorten(place, 100))
	}
	if more > 0 {
		places = append(places, fmt.Sprintf("and %d more", more))
	}
	told := NewError(ErrorInternal, toolerror.BrokenOutput(t.ToolID))
	told.Details, _ = marshal(struct { // it holds only strings: it cannot fail
		Errors []Problem `json:"errors"`
		More   int       `json:"more,omitempty"`
	}{problems, more})
	return &outcome{err: fmt.Errorf("%w, at %s", errOutput, strings.Join(places, ", ")), told: told}
}

// lister puts an empty list into each place where a schema wants a list and null stands, and an empty object
// where it wants a map: a slice and a map of Go that nothing was put in are encoded as null.
type lister struct{ changed bool }

func (l *lister) fill(n *node, v any) any {
	for n.ref != nil && len(n.types()) == 0 {
		n = n.ref
	}
	switch v := v.(type) {
	case nil:
		switch types := n.types(); {
		case len(types) != 1:
		case types[0] == "array":
			l.changed = true
			return []any{}
		case types[0] == "object" && n.mapped():
			l.changed = true
			return map[string]any{}
		}
	case map[string]any:
		for _, name := range n.names {
			if inside, has := v[name]; has {
				v[name] = l.fill(n.props[name], inside)
			}
		}
		if n.mapped() {
			for name, inside := range v {
				v[name] = l.fill(n.extra, inside)
			}
		}
	case []any:
		for i := range v {
			if n.items != nil {
				v[i] = l.fill(n.items, v[i])
			}
		}
	}
	return v
}
