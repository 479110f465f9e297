// Package scenario decides about the speech and the actions of the simulated model, and about the faults of its
// provider.
//
// A Scenario is read from YAML (Parse, Default); a Dialogue is a conversation that follows it. The dialogue is pure
// and has no clock: it takes the user's words or results and returns the steps of a turn, which the wires carry out.
//
// A FaultScript is read from YAML too; an Injector is one connection's use of it. The injector is pure: the wire
// reports its Point and gets the faults that are due. The same script, seed and points give the same faults.
package scenario

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"voicegw/internal/strict"
)

// Scenario is a parsed scenario file. It is immutable and safe for concurrent use.
type Scenario struct {
	start     []step // nil for the built-in greeting
	rules     []rule
	otherwise []step // nil for auto
}

type rule struct {
	when  when
	heard template // empty if the rule gives no words for speech
	do    []step   // nil if the rule only gives the words of speech
	times int      // maximum uses; 0 for no limit
}

type input int

const (
	onSpeech input = iota
	onText
	onResult
	onPrompt
)

// when is the condition of a rule. Zero values match anything.
type when struct {
	input     input
	utterance int            // onSpeech: its number, from 1
	text      *regexp.Regexp // onText and onPrompt
	tool      string         // onResult
	ok        *bool          // onResult
	errType   string         // onResult
	output    *regexp.Regexp // onResult
	declared  string         // a tool that the client must have declared
	// remembers must each match a line of the model's memory, forgot must match none.
	remembers, forgot []*regexp.Regexp
}

type step struct {
	key string
	run func(b *builder)
	// then and onError are steps after the results of a call.
	then, onError []step
	as            template // of treat_as
}

type callStep struct {
	tool   string
	id     template // empty: the wire makes an id
	args   any      // as read: map[string]any, with text as templates
	noID   bool
	repeat int
	late   time.Duration
}

//go:embed default.yaml
var defaultYAML []byte

var loadDefault = sync.OnceValue(func() *Scenario {
	s, err := Parse("default.yaml", defaultYAML)
	if err != nil {
		panic(fmt.Sprintf("scenario: the built-in scenario is wrong: %v", err))
	}
	return s
})

// Default returns the built-in scenario.
func Default() *Scenario { return loadDefault() }

const (
	maxRules   = 1000
	maxSteps   = 200
	maxText    = 5000 // characters of a spoken line
	longest    = time.Hour
	maxRepeats = 100
	maxCalls   = 32
)

// Parse reads a scenario from YAML; docs/simulator.md lists every key. The error is a *strict.Error with all problems
// and their lines; name is the file's.
func Parse(name string, data []byte) (*Scenario, error) {
	p := &parser{Reader: strict.NewReader(name)}
	s := &Scenario{}
	if doc := p.Document(data); doc != nil {
		p.file(s, doc)
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

type parser struct {
	*strict.Reader
	// base are the variables of every line, known those of the current lines.
	base, known []string
	// treats means that the next list of steps may be a treat_as.
	treats bool
}

func (p *parser) file(s *Scenario, doc *yaml.Node) {
	m, ok := p.Map(doc, "a scenario", "name", "start", "rules", "otherwise")
	if !ok {
		return
	}
	_, _ = p.Text(m.Get("name"), "name")
	p.base = append(slices.Clone(builtinVars), remembered(doc)...)
	p.known = p.base
	s.start = p.steps(m.Get("start"), "start")
	s.otherwise = p.steps(m.Get("otherwise"), "otherwise")
	rules := m.Get("rules")
	if rules == nil {
		if !m.Has("start") && !m.Has("otherwise") {
			p.Problem(doc, "the scenario is empty: give it rules, start or otherwise")
		}
		return
	}
	list := p.List(rules, "rules")
	if len(list) > maxRules {
		p.Problem(rules, "there are %d rules; at most %d are allowed", len(list), maxRules)
		return
	}
	for _, n := range list {
		s.rules = append(s.rules, p.rule(n))
	}
}

func (p *parser) rule(n *yaml.Node) rule {
	var u rule
	m, ok := p.Map(n, "a rule", "when", "heard", "do", "times")
	if !ok {
		return u
	}
	p.known = slices.Clone(p.base)
	if w := m.Get("when"); w != nil {
		u.when = p.when(w)
	} else {
		p.Problem(n, "the rule has no condition: give it when: {utterance: 1}, {text: pattern}, {tool: name} or {prompt: pattern}")
	}
	u.times, _ = p.Int(m.Get("times"), "times", 1, 1_000_000)
	if h := m.Get("heard"); h != nil {
		u.heard = p.template(h, "heard")
		if u.when.input != onSpeech {
			p.Problem(h, "heard goes with when: {utterance: …}; typed text and results are known already")
		}
	}
	switch do := m.Get("do"); {
	case do != nil:
		p.treats = u.when.input == onText
		u.do = p.steps(do, "do")
		if u.when.input == onPrompt {
			p.drawable(do, u.do)
		}
	case !m.Has("heard"):
		p.Problem(n, "the rule does nothing: give it do, a list of steps (or heard, to give only the words of the speech)")
	}
	return u
}

var conditionKeys = []string{"utterance", "text", "tool", "prompt", "ok", "error", "output", "declared", "remembers", "forgot"}

func (p *parser) when(n *yaml.Node) when {
	var w when
	m, ok := p.Map(n, "when", conditionKeys...)
	if !ok {
		return w
	}
	w.declared, _ = p.Text(m.Get("declared"), "declared")
	w.remembers, w.forgot = p.patterns(m.Get("remembers"), "remembers"), p.patterns(m.Get("forgot"), "forgot")
	inputs := slices.DeleteFunc([]string{"utterance", "text", "tool", "prompt"}, func(key string) bool { return !m.Has(key) })
	if len(inputs) != 1 {
		p.Problem(n, "when needs exactly one of utterance, text, tool and prompt")
		return w
	}
	useless := func(problem string, keys ...string) {
		for _, key := range keys {
			if m.Has(key) {
				p.Problem(m.Get(key), "%s %s", key, problem)
			}
		}
	}
	if inputs[0] != "tool" {
		useless("goes with tool", "ok", "error", "output")
	}
	switch inputs[0] {
	case "utterance":
		w.input = onSpeech
		if v := m.Get("utterance"); v.Value != "any" {
			w.utterance, _ = p.Int(v, "utterance (a number, or any)", 1, 1_000_000)
		}
	case "text":
		w.input = onText
		w.text = p.pattern(m.Get("text"), "text")
	case "prompt":
		w.input = onPrompt
		w.text = p.pattern(m.Get("prompt"), "prompt")
		useless("has no meaning with prompt: a request for an image has no tools and no conversation", "declared", "remembers", "forgot")
	default:
		p.whenResult(&w, m)
	}
	return w
}

func (p *parser) whenResult(w *when, m strict.Map) {
	w.input = onResult
	p.known = append(p.known, resultVars...)
	if tool, ok := p.Text(m.Get("tool"), "tool"); ok && tool != "any" {
		w.tool = tool
	}
	if b, ok := p.Bool(m.Get("ok"), "ok"); ok {
		w.ok = &b
	}
	if v := m.Get("error"); v != nil {
		if word, ok := p.Text(v, "error"); ok && word != "any" {
			w.errType = word
		}
		if w.ok != nil && *w.ok {
			p.Problem(v, "a result that is ok has no error; remove one of the two")
		}
		no := false
		w.ok = &no
	}
	w.output = p.pattern(m.Get("output"), "output")
}

func (p *parser) patterns(n *yaml.Node, what string) []*regexp.Regexp {
	if n == nil {
		return nil
	}
	var out []*regexp.Regexp
	for _, e := range p.oneOrMore(n, what) {
		if re := p.pattern(e, what); re != nil {
			out = append(out, re)
		} else if e.Value == "any" {
			out = append(out, regexp.MustCompile("")) // any line
		}
	}
	return out
}

// pattern reads a regular expression, whose groups become variables; nil for "any".
func (p *parser) pattern(n *yaml.Node, what string) *regexp.Regexp {
	text, ok := p.Text(n, what)
	if !ok || text == "any" {
		return nil
	}
	re, err := regexp.Compile("(?i)" + text)
	if err != nil {
		p.Problem(n, "%s is not a valid regular expression (RE2 syntax): %v", what, err)
		return nil
	}
	for i, name := range re.SubexpNames() {
		p.known = append(p.known, strconv.Itoa(i))
		if name != "" {
			p.known = append(p.known, name)
		}
	}
	return re
}

func (p *parser) template(n *yaml.Node, what string) template {
	text, ok := p.Text(n, what)
	if !ok {
		return template{}
	}
	if strings.TrimSpace(text) == "" {
		p.Problem(n, "%s is empty", what)
		return template{}
	}
	if len(text) > maxText {
		p.Problem(n, "%s has %d characters; at most %d are spoken", what, len(text), maxText)
		return template{}
	}
	t, err := compile(text)
	if err != nil {
		p.Problem(n, "%s: %v", what, err)
		return template{}
	}
	for _, name := range t.variables() {
		base, _, _ := strings.Cut(name, ".")
		if !slices.Contains(p.known, base) || base != name && base != "result" {
			p.Problem(n, "%s uses ${%s}, which is unknown here%s; known are %s",
				what, name, strict.Near(name, p.known), strict.Join(p.known))
		}
	}
	return t
}
