package registry

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"voicegw/prompts"
	"voicegw/registry/document"
	"voicegw/registry/spec"
)

const describeParameters = `{
  "type": "object",
  "properties": {"tool": {"type": "string", "description": "` + prompts.DescribeToolName + `"}},
  "required": ["tool"],
  "additionalProperties": false
}`

type describeArgs struct {
	Tool string `json:"tool"`
}

type describeNeeds struct{ Snapshot *Snapshot }

type description struct {
	Tool     string        `json:"tool"`
	Version  string        `json:"version"`
	Category spec.Category `json:"category"`
	Guide    string        `json:"guide"`
}

func describeTool(_ context.Context, call Call[describeArgs, describeNeeds]) (Result, error) {
	tool, ok := call.Needs.Snapshot.Tool(call.Args.Tool)
	if !ok || !tool.Allows(call.Session.Mode) {
		var names []string
		for _, t := range call.Needs.Snapshot.Tools(call.Session.Mode) {
			names = append(names, t.ToolID)
		}
		words := prompts.NoGuide(document.Shorten(call.Args.Tool, 80), document.Shorten(strings.Join(names, ", "), 1000))
		return Result{}, &ToolError{Type: ErrorNotFound, Message: words.Message, Suggestion: words.Suggestion}
	}
	return Result{Data: description{Tool: tool.ToolID, Version: tool.Version, Category: tool.Category, Guide: tool.Guide}}, nil
}

type builtin struct {
	entry   Entry
	handler Handler
}

// Builtins returns the built-in tools, sorted by id. The caller owns the slice.
func Builtins() []Entry {
	var entries []Entry
	for _, b := range builtins() {
		entries = append(entries, b.entry)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.ToolID, b.ToolID) })
	return entries
}

func builtins() map[string]builtin {
	return map[string]builtin{spec.DescribeTool: {
		handler: Bind(describeTool),
		entry: Entry{
			Spec: spec.Spec{
				ToolID: spec.DescribeTool, Version: "1.0.0",
				Description: prompts.DescribeTool,
				Category:    spec.CategoryUtility, SideEffects: spec.SideEffectsNone, Idempotent: true,
				AllowedModes: []spec.Mode{spec.ModeText, spec.ModeVoice}, LatencyBudgetMS: 100, TimeoutMS: 1000,
				Parameters: json.RawMessage(describeParameters),
				Dynamic:    map[string]string{"/properties/tool/enum": spec.LiveTools},
			},
			Summary: prompts.DescribeToolSummary,
			Guide:   prompts.DescribeToolGuide,
			Forms:   ownForms(json.RawMessage(describeParameters)),
		},
	}}
}
