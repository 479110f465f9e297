package build

import (
	"context"
	"encoding/json"
	"fmt"

	"voicegw/registry"
	"voicegw/registry/document"
	"voicegw/registry/spec"
)

// exampleChecker checks arguments of examples like those of a call.
type exampleChecker struct{ snapshot *registry.Snapshot }

// exampleTool is the name of a stand-in for the tool, because its other fields may still be invalid.
const exampleTool = "example"

func newExampleChecker(t *tool) (*exampleChecker, error) {
	file := registry.File{Tools: []registry.Entry{{
		Spec: spec.Spec{
			ToolID: exampleTool, Version: "1.0.0", Description: "Checks examples.", Category: spec.CategoryUtility,
			SideEffects: spec.SideEffectsNone, Idempotent: true, AllowedModes: []spec.Mode{spec.ModeText},
			LatencyBudgetMS: 1, TimeoutMS: spec.DefaultTimeoutMS, Parameters: t.entry.Parameters,
		},
		Summary: "Checks examples.", Guide: "# " + exampleTool + "\n", Forms: t.entry.Forms,
	}}}
	data, err := file.Encode()
	if err != nil {
		return nil, fmt.Errorf("writing the parameters: %w", err)
	}
	nothing := func(context.Context, registry.Call[json.RawMessage, struct{}]) (registry.Result, error) {
		return registry.Result{}, nil
	}
	loaded, err := registry.Load(data, registry.Options{Handlers: map[string]registry.Handler{exampleTool: registry.Bind(nothing)}})
	if err != nil {
		return nil, fmt.Errorf("loading the parameters: %w", err)
	}
	return &exampleChecker{loaded.Snapshot()}, nil
}

func (c *exampleChecker) check(args json.RawMessage) []document.Problem {
	p, refused := c.snapshot.Prepare(exampleTool, spec.ModeText, args)
	if refused == nil {
		return p.Invalid() // an example must be complete
	}
	var details struct {
		Errors []document.Problem `json:"errors"`
	}
	if err := json.Unmarshal(refused.Error.Details, &details); err != nil || len(details.Errors) == 0 {
		return []document.Problem{{Message: refused.Error.Message}}
	}
	return details.Errors
}
