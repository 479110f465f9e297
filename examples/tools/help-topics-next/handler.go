// Package helptopicsnext is a version of the tool help_topics that counts, and hands out the topics one by one.
package helptopicsnext

import (
	"cmp"
	"context"

	"voicegw/registry"
	"voicegw/registry/spec"
)

// Needs are the capabilities that the tool uses. Parts are handed out in text alone.
type Needs struct {
	Tools  *registry.Snapshot
	Stream registry.Optional[registry.Stream]
}

// Execute names the tools of the session.
func Execute(_ context.Context, call registry.Call[Args, Needs]) (registry.Result, error) {
	output := Output{Topics: []string{}}
	stream, shows := call.Needs.Stream.Get()
	for _, tool := range call.Needs.Tools.Tools(call.Session.Mode) {
		if tool.ToolID == spec.DescribeTool { // the gateway's own
			continue
		}
		topic := cmp.Or(tool.Title, tool.ToolID)
		output.Topics = append(output.Topics, topic)
		if shows && len(output.Topics) <= registry.MaxParts {
			if err := stream.Part(topic); err != nil {
				return registry.Result{}, err
			}
		}
	}
	output.Count = int64(len(output.Topics))
	return registry.Result{Data: output}, nil
}
