package agent

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"voicegw/internal/strict"
)

var languageForm = regexp.MustCompile(`^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$`)

// World is what documents may refer to.
type World struct {
	Tools     []string
	Agents    []string
	Providers []Provider

	tools, agents map[string]bool // indexes of Tools and Agents; nil before Indexed
}

// Indexed returns a World for checking many documents. Its lists must not change.
func (w World) Indexed() World {
	w.tools, w.agents = set(w.Tools), set(w.Agents)
	return w
}

// Provider is a provider that documents may name.
type Provider struct {
	Name string
	// Offered means that sessions can use it. A voice may be named for any provider: a document fits several
	// installations.
	Offered bool
	Models  []string
	Refuses func(model string) bool
	// Voices returns a model's voices, empty for the provider's default model; a nil result or function accepts any.
	Voices func(model string) []string
}

const mostNamed = 40

// Check may be called once. The error is a *strict.Error with all problems since Read; the agent lacks the invalid
// references.
func (d *Draft) Check(w World) (Agent, error) {
	if w.tools == nil {
		w = w.Indexed()
	}
	d.checkTools(w)
	d.checkProviders(w)
	d.checkSwitches(w)
	return d.agent, d.r.Err()
}

func (d *Draft) checkTools(w World) {
	for _, t := range d.tools {
		if !w.tools[t.name] {
			d.r.Problem(t.at, "there is no tool %q%s; run voicegw tools list", clip(t.name), strict.Near(t.name, w.Tools))
		}
	}
	d.agent.Tools = kept(d.agent.Tools, func(name string) bool { return w.tools[name] })
}

func set(names []string) map[string]bool {
	in := make(map[string]bool, len(names))
	for _, name := range names {
		in[name] = true
	}
	return in
}

// kept returns the known ones of names; nil for nil.
func kept(names []string, known func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !known(name) })
}

func (d *Draft) checkProviders(w World) {
	known := map[string]Provider{}
	var all, offered []string
	for _, p := range w.Providers {
		known[p.Name] = p
		all = append(all, p.Name)
		if p.Offered {
			offered = append(offered, p.Name)
		}
	}
	slices.Sort(all)
	slices.Sort(offered)
	if name := d.agent.Provider; name != "" && !slices.Contains(offered, name) {
		d.r.Problem(d.provider, "the provider %q is not configured here%s; there is %s", clip(name), strict.Near(name, offered),
			strict.Join(offered))
		d.agent.Provider, d.agent.Model = "", ""
	} else if name != "" {
		d.checkModel(w, known[name])
	}
	for _, name := range slices.Sorted(maps.Keys(d.voices)) {
		at := d.voices[name]
		p, ok := known[name]
		if !ok {
			d.r.Problem(at, "voices names the provider %q, which is not configured here%s; there is %s", clip(name),
				strict.Near(name, all), strict.Join(all))
			d.mute(name)
			continue
		}
		d.checkVoice(w, p, at)
	}
}

func (d *Draft) checkModel(w World, p Provider) {
	problem, warning := w.aboutModel(p, d.agent.Model)
	if problem != "" {
		d.r.Problem(d.model, "%s", problem)
		d.agent.Model = ""
	}
	d.warn(d.model, warning)
}

func (d *Draft) checkVoice(w World, p Provider, at *yaml.Node) {
	model := ""
	if d.agent.Provider == p.Name {
		model = d.agent.Model
	}
	problem, warning := w.aboutVoice(p, model, d.agent.Voices[p.Name])
	if problem != "" {
		d.r.Problem(at, "%s", problem)
		d.mute(p.Name)
	}
	d.warn(at, warning)
}

func (d *Draft) warn(at *yaml.Node, warning string) {
	if warning != "" {
		d.agent.Warnings = append(d.agent.Warnings, fmt.Sprintf("line %d: %s", at.Line, warning))
	}
}

func (d *Draft) mute(provider string) {
	d.agent.Voices = maps.Clone(d.agent.Voices)
	delete(d.agent.Voices, provider)
}

func (d *Draft) checkSwitches(w World) {
	for _, s := range d.switchTo {
		switch {
		case s.name == d.agent.ID:
			d.r.Problem(s.at, "switch_to names the agent itself; remove it")
		case !w.agents[s.name]:
			d.r.Problem(s.at, "switch_to names the agent %q, which does not exist%s; there is %s", clip(s.name),
				strict.Near(s.name, w.Agents), quoted(w.Agents, mostNamed))
		}
	}
	d.agent.SwitchTo = kept(d.agent.SwitchTo, func(name string) bool { return name != d.agent.ID && w.agents[name] })
}

// A refused name is a problem, an unknown one a warning: the provider may have new models or custom voices.

// Names checks a configured model and voice of a provider; empty names are valid.
func (w World) Names(provider, model, voice string) (problems, warnings []string) {
	i := slices.IndexFunc(w.Providers, func(p Provider) bool { return p.Name == provider })
	if i < 0 {
		return nil, nil
	}
	keep := func(problem, warning string) {
		if problem != "" {
			problems = append(problems, problem)
		}
		if warning != "" {
			warnings = append(warnings, warning)
		}
	}
	keep(w.aboutModel(w.Providers[i], model))
	keep(w.aboutVoice(w.Providers[i], model, voice))
	return problems, warnings
}

func (p Provider) lists(model string) bool {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	return slices.ContainsFunc(p.Models, func(known string) bool { return name == known || strings.HasPrefix(name, known+"-") })
}

func (p Provider) speaks(voice string) bool {
	return p.Voices != nil && slices.Contains(p.Voices(""), voice)
}

func (w World) aboutModel(p Provider, model string) (problem, warning string) {
	anothers := slices.ContainsFunc(w.Providers, func(other Provider) bool { return other.lists(model) })
	switch {
	case model == "" || p.lists(model):
	case p.Refuses != nil && p.Refuses(model), len(p.Models) > 0 && anothers:
		problem = fmt.Sprintf("%s does not support the model %q for voice sessions; choose one of %s", p.Name, clip(model),
			quoted(p.Models, mostNamed))
	case len(p.Models) > 0:
		warning = fmt.Sprintf("unknown %s model %q%s; known are %s", p.Name, clip(model), strict.Near(model, p.Models),
			quoted(p.Models, mostNamed))
	}
	return problem, warning
}

func (w World) aboutVoice(p Provider, model, voice string) (problem, warning string) {
	if p.Voices == nil || voice == "" {
		return "", ""
	}
	voices := p.Voices(model)
	misspelt := slices.ContainsFunc(voices, func(v string) bool { return strings.EqualFold(v, voice) })
	switch {
	case len(voices) == 0 || slices.Contains(voices, voice):
	case misspelt || slices.ContainsFunc(w.Providers, func(other Provider) bool { return other.speaks(voice) }):
		problem = fmt.Sprintf("%s has no voice %q%s; choose one of %s", p.Name, clip(voice), strict.Near(voice, voices),
			quoted(voices, mostNamed))
	default:
		warning = fmt.Sprintf("unknown %s voice %q%s; known are %s", p.Name, clip(voice), strict.Near(voice, voices),
			quoted(voices, mostNamed))
	}
	return problem, warning
}
