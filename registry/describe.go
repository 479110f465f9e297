package registry

import (
	"context"
	"encoding/json"
	"fmt"
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

// Builtins returns the built-in tools, sorted by id. The caller owns the slice.
func Builtins() []Entry { return []Entry{describer().Entry} }

// describer makes the tool describe_tool of a registry.
func describer() *Tool {
	return ownTool(spec.Spec{
		ToolID: spec.DescribeTool, Description: prompts.DescribeTool, Idempotent: true, LatencyBudgetMS: 100,
		Parameters: json.RawMessage(describeParameters), Dynamic: map[string]string{"/properties/tool/enum": spec.LiveTools},
	}, prompts.DescribeToolSummary, prompts.DescribeToolGuide, Bind(describeTool), source{tools: true})
}

// ownTool makes a tool of the gateway's own. needs are the sources of the handler's needs.
func ownTool(s spec.Spec, summary, guide string, h Handler, needs ...source) *Tool {
	s.Version, s.TimeoutMS = "1.0.0", 1000
	s.Category, s.SideEffects = spec.CategoryUtility, spec.SideEffectsNone
	s.AllowedModes = []spec.Mode{spec.ModeText, spec.ModeVoice}
	params, problems := document.CompileParameters(s.Parameters)
	forms, err := FormsOf(s.Parameters)
	if len(problems) > 0 || err != nil {
		panic(fmt.Sprint("registry: the schema of "+s.ToolID+": ", problems, err)) // cannot happen: the schema is made here
	}
	return &Tool{
		Entry:    Entry{Spec: s, Summary: summary, Guide: guide, Forms: forms},
		compiled: &spec.Compiled{Parameters: params},
		handler:  h,
		sources:  map[spec.Mode][]source{spec.ModeText: needs, spec.ModeVoice: needs},
	}
}
