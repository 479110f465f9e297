package agent

import (
	"fmt"
	"slices"
	"strings"

	"voicegw/internal/strict"
)

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
