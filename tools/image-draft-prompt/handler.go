// Package imagedraftprompt implements the tool image_draft_prompt.
package imagedraftprompt

import (
	"context"
	"strings"

	"voicegw/internal/textutil"
	"voicegw/registry"
	"voicegw/registry/document"
)

// Needs are the capabilities of image_draft_prompt: none.
type Needs struct{}

// Execute writes the variants. It is deterministic, and a smaller count returns a prefix of a larger one.
func Execute(_ context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	idea := strings.TrimRight(strings.Join(strings.Fields(call.Args.Idea), " "), ".,;:!")
	if textutil.IsBlank(idea) {
		return registry.Result{}, registry.Invalid([]document.Problem{{Path: "/idea", Message: "Say what the image shows."}},
			"The idea is blank.")
	}
	answer := Output{Variants: make([]OutputVariantsItem, call.Args.Count)}
	for i := range answer.Variants {
		s := styles[i%len(styles)]
		if call.Args.Style != nil {
			s = styleOf(*call.Args.Style)
		}
		answer.Variants[i] = variant(idea, s, compositions[i%len(compositions)], s.lights[i%len(s.lights)])
	}
	return registry.Result{Data: answer}, nil
}

func variant(idea string, s style, c composition, light string) OutputVariantsItem {
	return OutputVariantsItem{
		Prompt: s.opening + " " + idea + ". Composition: " + c.words + ". Light: " + light + ". " + s.finish + ".",
		Style:  OutputVariantsItemStyle(s.name), Composition: c.words, Light: light, Size: c.size,
	}
}
