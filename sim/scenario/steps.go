package scenario

import (
	"math"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"

	"voicegw/internal/strict"
)

var stepKeys = []string{"say", "silence", "wait", "call", "then", "on_error", "fault", "end", "remember", "refuse", "treat_as", "auto"}

// steps reads a list of steps, or the word auto. It is nil only if missing.
func (p *parser) steps(n *yaml.Node, what string) []step {
	if n == nil {
		return nil
	}
	out := []step{}
	treats := p.treats
	p.treats = false
	if n.Kind == yaml.ScalarNode && n.Value == "auto" {
		return append(out, step{key: "auto", run: (*builder).auto})
	}
	if n.Kind == yaml.ScalarNode && n.Value == "nothing" {
		return out
	}
	list := p.List(n, what+" (or the word auto, or nothing)")
	if len(list) > maxSteps {
		p.Problem(n, "%s has %d steps; at most %d are allowed", what, len(list), maxSteps)
		return out
	}
	call := -1 // index of the call step
	for _, e := range list {
		key, value, ok := p.stepKey(e)
		if !ok {
			continue
		}
		if key == "then" || key == "on_error" {
			p.after(e, key, value, out, call)
			continue
		}
		if call >= 0 {
			p.afterCall(e, key, out[call])
		}
		if key == "treat_as" && (!treats || len(list) > 1) {
			p.Problem(e, "treat_as must be the only step, in a rule with when: {text: …}: the rules for the other text decide what is done")
			continue
		}
		if s, ok := p.step(key, value); ok {
			if key == "call" && call < 0 {
				call = len(out)
			}
			out = append(out, s)
		}
	}
	return out
}

func (p *parser) afterCall(n *yaml.Node, key string, call step) {
	switch {
	case call.then != nil || call.onError != nil:
		p.Problem(n, "%s comes after then or on_error, where no step is allowed; move it into them", key)
	case key == "call":
		p.Problem(n, "there is a second call; put both into one call: a list is called in parallel. To call after the "+
			"results, put it in then")
	case key == "say" || key == "silence" || key == "refuse" || key == "auto":
		p.Problem(n, "%s comes after call; what is said after the results belongs in then", key)
	}
}

func (p *parser) after(n *yaml.Node, key string, value *yaml.Node, out []step, call int) {
	if call < 0 {
		p.Problem(n, "%s has no call before it", key)
		return
	}
	s := &out[call]
	into := &s.then
	if key == "on_error" {
		into = &s.onError
	}
	if *into != nil {
		p.Problem(n, "there is a second %s", key)
		return
	}
	known := p.known
	p.known = append(append([]string{}, known...), resultVars...)
	*into = p.steps(value, key)
	p.known = known
}

// stepKey reads a step's key; a single word means `word: true`.
func (p *parser) stepKey(n *yaml.Node) (key string, value *yaml.Node, ok bool) {
	if n.Kind == yaml.ScalarNode && (n.Value == "auto" || n.Value == "end") {
		return n.Value, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true", Line: n.Line}, true
	}
	m, ok := p.Map(n, "a step", stepKeys...)
	if !ok {
		return "", nil, false
	}
	if len(m.Keys()) != 1 {
		if len(n.Content) <= 2 { // the unknown key was already reported
			return "", nil, false
		}
		p.Problem(n, "a step does one thing; it is one of %s, each on its own line after \"- \"", strict.Join(stepKeys))
		return "", nil, false
	}
	return m.Keys()[0], m.Get(m.Keys()[0]), true
}

func (p *parser) step(key string, n *yaml.Node) (s step, ok bool) {
	s.key = key
	switch key {
	case "say", "refuse":
		var lines []template
		for _, e := range p.oneOrMore(n, "say") {
			lines = append(lines, p.template(e, key))
		}
		s.run = func(b *builder) { b.say(b.pick(lines)) }
		if key == "refuse" {
			s.run = func(b *builder) { b.refuse(b.pick(lines)) }
		}
		return s, len(lines) > 0
	case "silence", "wait":
		wait, ok := p.Duration(n, key, longest)
		s.run = func(b *builder) { b.steps = append(b.steps, Wait{For: wait}) }
		if key == "silence" {
			s.run = func(b *builder) { b.steps = append(b.steps, Say{Silence: wait}) }
		}
		return s, ok
	case "call":
		calls := p.calls(n)
		s.run = func(b *builder) { b.call(calls) }
		return s, true // even if invalid, so that then finds its call
	case "fault":
		a, ok := readFault(p.Reader, n)
		s.run = func(b *builder) { b.steps = append(b.steps, a) }
		return s, ok
	case "end":
		end, ok := p.end(n)
		s.run = func(b *builder) { b.steps = append(b.steps, end) }
		return s, ok
	case "treat_as":
		s.as, s.run = p.template(n, "treat_as"), func(*builder) {}
		return s, true
	case "remember":
		keep, ok := p.remember(n)
		s.run = func(b *builder) { b.remember(keep) }
		return s, ok
	}
	s.run = (*builder).auto
	if yes, ok := p.Bool(n, "auto"); ok && !yes {
		p.Problem(n, "auto: false has no meaning; remove it")
	}
	return s, true
}

func (p *parser) end(n *yaml.Node) (End, bool) {
	e := End{Code: 1000}
	if n.Kind == yaml.ScalarNode {
		yes, ok := p.Bool(n, "end (true, or a mapping with code and reason)")
		return e, ok && yes
	}
	m, ok := p.Map(n, "end", "code", "reason")
	if !ok {
		return e, false
	}
	if v := m.Get("code"); v != nil {
		e.Code, _ = readCode(p.Reader, v)
	}
	e.Reason, _ = p.Text(m.Get("reason"), "reason")
	return e, true
}

func (p *parser) oneOrMore(n *yaml.Node, what string) []*yaml.Node {
	if n.Kind == yaml.SequenceNode {
		return p.List(n, what)
	}
	return []*yaml.Node{n}
}

func (p *parser) calls(n *yaml.Node) []callStep {
	list := p.oneOrMore(n, "call")
	if len(list) > maxCalls {
		p.Problem(n, "there are %d calls at once; at most %d are allowed", len(list), maxCalls)
		return nil
	}
	var out []callStep
	for _, e := range list {
		out = append(out, p.call(e))
	}
	return out
}

func (p *parser) call(n *yaml.Node) callStep {
	c := callStep{args: map[string]any{}}
	if n.Kind == yaml.ScalarNode {
		c.tool, _ = p.Text(n, "call")
		return c
	}
	m, ok := p.Map(n, "call", "tool", "args", "id", "without_id", "repeat", "late")
	if !ok {
		return c
	}
	c.tool, _ = p.Text(m.Get("tool"), "tool")
	if c.tool == "" {
		p.Problem(n, "the call names no tool: give it tool")
	}
	if v := m.Get("args"); v != nil {
		if _, ok := p.Map(v, "args"); ok {
			c.args = p.value(v)
		}
	}
	c.id = p.template(m.Get("id"), "id")
	c.noID, _ = p.Bool(m.Get("without_id"), "without_id")
	if c.noID && m.Has("id") {
		p.Problem(m.Get("without_id"), "a call cannot both have an id and be without one; remove one of the two")
	}
	c.repeat, _ = p.Int(m.Get("repeat"), "repeat", 0, maxRepeats)
	c.late, _ = p.Duration(m.Get("late"), "late", longest)
	return c
}

func (p *parser) value(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		m, _ := p.Map(n, "args")
		out := map[string]any{}
		for _, k := range m.Keys() {
			out[k] = p.value(m.Get(k))
		}
		return out
	case yaml.SequenceNode:
		out := []any{}
		for _, e := range n.Content {
			out = append(out, p.value(e))
		}
		return out
	}
	var v any
	switch n.Tag {
	case "!!int", "!!float", "!!bool", "!!null":
		if err := n.Decode(&v); err != nil {
			p.Problem(n, "an argument cannot be read: %v", err)
		}
		if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
			p.Problem(n, "JSON cannot represent %s; give a number", n.Value)
			return nil
		}
		return v
	}
	if n.Value == "" {
		return template{}
	}
	return p.template(n, "args")
}

func (p *parser) drawable(n *yaml.Node, steps []step) {
	for _, s := range steps {
		if !slices.Contains([]string{"say", "refuse", "wait", "fault"}, s.key) {
			p.Problem(n, "a rule for a prompt can only say, refuse, wait and inject a fault; without any of them the image is drawn")
			return
		}
	}
}

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
