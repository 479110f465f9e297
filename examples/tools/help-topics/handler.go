// Package helptopics is the tool help_topics: it names what there is help with.
package helptopics

import (
	"cmp"
	"context"

	"voicegw/registry"
	"voicegw/registry/spec"
)

// Needs are the capabilities that the tool uses.
type Needs struct {
	Tools *registry.Snapshot
}

// Execute names the tools of the session.
func Execute(_ context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	output := Output{Topics: []string{}}
	for _, tool := range call.Needs.Tools.Tools(call.Session.Mode) {
		if tool.ToolID != spec.DescribeTool { // the gateway's own
			output.Topics = append(output.Topics, cmp.Or(tool.Title, tool.ToolID))
		}
	}
	return registry.Result{Data: output}, nil
}
