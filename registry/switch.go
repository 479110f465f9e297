package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"voicegw/prompts"
	"voicegw/registry/document"
	"voicegw/registry/spec"
)

// SwitchTarget is an agent that another one may hand the user over to.
type SwitchTarget struct {
	// ID is the agent's name for the model, at most MaxAgent bytes. Name and Description explain its purpose; may be empty.
	ID, Name, Description string
}

// maxTargetWords limits the description of a target, and maxTargets that of all, in characters. maxSwitches limits the
// cached tools, one for each set of targets.
const (
	maxTargetWords = 200
	maxTargets     = 6000
	maxSwitches    = 1024
)

type switchArgs struct {
	Agent   string `json:"agent"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type switched struct {
	Agent string `json:"agent"`
	Note  string `json:"note"`
}

// Switching returns a snapshot of the same version that also has the built-in tool [spec.AgentSwitch], with these agents
// as the values of its parameter agent. Snapshots with the same targets share the tool. Without targets it returns s.
func (s *Snapshot) Switching(targets []SwitchTarget) *Snapshot {
	if s == nil || len(targets) == 0 {
		return s
	}
	tool := s.switches.get(fmt.Sprintf("%q", targets), maxSwitches, func() *Tool { return switchTool(targets) })
	return s.holding(append(slices.Clone(s.sorted), tool))
}

func switchHandler(targets []SwitchTarget) Handler {
	names := make(map[string]string, len(targets))
	for _, t := range targets {
		names[t.ID] = t.Name
	}
	return Bind(func(_ context.Context, call Call[switchArgs, struct{}]) (Result, error) {
		return Result{
			Data: switched{Agent: call.Args.Agent, Note: prompts.SwitchedNote(names[call.Args.Agent], call.Args.Agent,
				call.Args.Message)},
			Intents: []Intent{SwitchAgent(call.Args.Agent, call.Args.Reason, call.Args.Message)},
		}, nil
	})
}

func switchTool(targets []SwitchTarget) *Tool {
	ids := make([]string, len(targets))
	for i, t := range targets {
		ids[i] = t.ID
	}
	quoted := func(v any) []byte {
		text, _ := document.Marshal(v) // strings only: cannot fail
		return text
	}
	parameters := fmt.Appendf(nil, `{"type":"object","properties":{"agent":{"type":"string","enum":%s,"description":%s},`+
		`"reason":{"type":"string","minLength":1,"maxLength":%d,"description":%s},"message":{"type":"string","maxLength":%d,`+
		`"description":%s}},`+
		`"required":["agent","reason"],"additionalProperties":false}`,
		quoted(ids), quoted(prompts.AgentSwitchAgent+targetWords(targets)), MaxReason, quoted(prompts.AgentSwitchReason),
		MaxPendingMessage, quoted(prompts.AgentSwitchMessage))
	return ownTool(spec.Spec{
		ToolID: spec.AgentSwitch, Description: prompts.AgentSwitch, LatencyBudgetMS: 500, Parameters: parameters,
	}, prompts.AgentSwitchSummary, prompts.AgentSwitchGuide+targetWords(targets), switchHandler(targets))
}

func targetWords(targets []SwitchTarget) string {
	var b strings.Builder
	for _, t := range targets {
		line := "\n" + t.ID
		if words := strings.TrimSpace(strings.Join(strings.Fields(t.Name+". "+t.Description), " ")); words != "." {
			line += ": " + document.Shorten(words, maxTargetWords)
		}
		if b.Len()+len(line) > maxTargets {
			break
		}
		b.WriteString(line)
	}
	return b.String()
}
