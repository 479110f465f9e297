package scenario

import (
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"

	"voicegw/internal/strict"
)

var variableName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

func (p *parser) remember(n *yaml.Node) (map[string]template, bool) {
	m, ok := p.Map(n, "remember")
	if !ok {
		return nil, false
	}
	if len(m.Keys()) == 0 {
		p.Problem(n, `remember is empty: give it names and values, like {place: "${result.data.place}"}`)
	}
	keep := map[string]template{}
	for _, name := range m.Keys() {
		switch {
		case !variableName.MatchString(name):
			p.Problem(m.Get(name), "%q is not a variable name; use letters, digits and _, a letter first", name)
		case slices.Contains(ownValues, name):
			p.Problem(m.Get(name), "${%s} is reserved; choose a name other than %s", name, strict.Join(ownValues))
		default:
			keep[name] = p.template(m.Get(name), "remember")
		}
	}
	return keep, true
}

var ownValues = append(slices.Clone(builtinVars), resultVars...)

// remembered lists the variables of all remember steps: earlier lines may use them, empty.
func remembered(n *yaml.Node) []string {
	var names []string
	if n.Kind == yaml.MappingNode && len(n.Content) == 2 && n.Content[0].Value == "remember" && n.Content[1].Kind == yaml.MappingNode {
		for i := 0; i < len(n.Content[1].Content); i += 2 {
			if name := n.Content[1].Content[i].Value; variableName.MatchString(name) && !slices.Contains(ownValues, name) {
				names = append(names, name)
			}
		}
	}
	for _, c := range n.Content {
		for _, name := range remembered(c) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
