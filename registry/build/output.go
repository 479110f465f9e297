package build

import (
	"errors"
	"slices"
	"strings"

	"voicegw/registry/adapter"
	"voicegw/registry/document"
)

func (l *linter) output(file string, tree *node, t *tool, problems []document.Problem) {
	const field = "/output"
	schema := t.entry.Output
	if len(schema) == 0 || slices.ContainsFunc(problems, func(p document.Problem) bool {
		return p.Path == "" || p.Path == field || strings.HasPrefix(p.Path, field+"/")
	}) {
		return
	}
	form, err := adapter.OpenAIParameters(schema)
	var refused adapter.Problems
	switch {
	case errors.As(err, &refused):
		for _, p := range refused {
			pointer := field + p.Path
			l.add(file, tree.lineOf(pointer), pointer, ruleOf(field),
				"No Go type can be made of this, as a model could not be told of it in parameters: %s", sentence(p.Message))
		}
		return
	case err != nil:
		l.add(file, tree.lineOf(field), field, ruleOf(field), "%v.", err)
		return
	}
	if l.bounds(file, tree, field, schema) {
		t.output = form
	}
}
