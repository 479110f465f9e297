package registry

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
)

// DescribeTool is the id of the utility that is built in: it gives a model the
// whole guide of a tool it may use. It is in every snapshot and not in any file.
const DescribeTool = "describe_tool"

const describeParameters = `{
  "type": "object",
  "properties": {"tool": {"type": "string", "minLength": 1, "maxLength": 64, "description": "The tool's name, such as kb_search."}},
  "required": ["tool"],
  "additionalProperties": false
}`

const describeGuide = `# describe_tool

Gives the whole guide of a tool: every parameter, examples, what to watch out for. Use it before a tool you do not know well.

## Parameters

- ` + "`tool`" + ` (required): the tool's name as it stands in the list of tools.

## Examples

` + "```json" + `
{"tool": "kb_search"}
` + "```" + `
`

type describeArgs struct {
	Tool string `json:"tool"`
}

type describeNeeds struct{ Snapshot *Snapshot }

type description struct {
	Tool     string   `json:"tool"`
	Version  string   `json:"version"`
	Category Category `json:"category"`
	Guide    string   `json:"guide"`
}

func describeTool(_ context.Context, call Call[describeArgs, describeNeeds]) (Result, error) {
	tool, ok := call.Needs.Snapshot.Tool(call.Args.Tool)
	if !ok || !tool.Allows(call.Session.Mode) {
		var names []string
		for _, t := range call.Needs.Snapshot.Tools(call.Session.Mode) {
			names = append(names, t.ToolID)
		}
		err := Errorf(ErrorNotFound, "There is no tool named %q here.", shorten(call.Args.Tool, 80))
		err.Suggestion = "The tools are: " + shorten(strings.Join(names, ", "), 1000) + "."
		return Result{}, err
	}
	return Result{Data: description{Tool: tool.ToolID, Version: tool.Version, Category: tool.Category, Guide: tool.Guide}}, nil
}

// builtin is a tool that every registry has.
type builtin struct {
	entry   Entry
	handler Handler
}

// Builtins are the tools that every registry has besides those of its file, sorted by
// id. The caller owns what it gets.
func Builtins() []Entry {
	var entries []Entry
	for _, b := range builtins() {
		entries = append(entries, b.entry)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.ToolID, b.ToolID) })
	return entries
}

// builtins are new values for each caller, by id.
func builtins() map[string]builtin {
	openai := json.RawMessage(`{"type":"object","properties":{"tool":{"type":"string","description":"The tool's name, such as kb_search."}},"required":["tool"],"additionalProperties":false}`)
	return map[string]builtin{DescribeTool: {
		handler: Bind(describeTool),
		entry: Entry{
			Spec: Spec{
				ToolID: DescribeTool, Version: "1.0.0",
				Description: "Gives the whole guide of one of your tools: its parameters, examples and pitfalls.",
				Category:    CategoryUtility, SideEffects: SideEffectsNone, Idempotent: true,
				AllowedModes: []Mode{ModeText, ModeVoice}, LatencyBudgetMS: 100, TimeoutMS: 1000,
				Parameters: json.RawMessage(describeParameters),
			},
			Summary: "Gives the whole guide of a tool: every parameter, examples, what to watch out for. Use it before a tool you do not know well.",
			Guide:   describeGuide,
			Forms: Forms{
				OpenAI: openai, OpenAIChat: slices.Clone(openai),
				Gemini: json.RawMessage(`{"type":"OBJECT","properties":{"tool":{"type":"STRING","description":"The tool's name, such as kb_search."}},"required":["tool"],"propertyOrdering":["tool"]}`),
			},
		},
	}}
}
