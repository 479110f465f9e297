package spec

import (
	"fmt"
	"slices"
	"strings"
)

// ConfirmAction is the tool with which a model reports the user's spoken answer to a
// question for approval. The gateway declares it itself if spoken approval is allowed, and
// handles its calls before any tool of the registry; no file may hold a tool of that name.
const ConfirmAction = "confirm_action"

// AgentSwitch is the tool with which a model hands the conversation to another agent.
const AgentSwitch = "agent_switch"

// DescribeTool is the id of the built-in utility that gives a model the whole guide of a
// tool it may use. It is in every snapshot and not in any file.
const DescribeTool = "describe_tool"

// ReservedNames lists the ids that the gateway itself declares to models, sorted: no tool
// may have one of them. Every tool of the gateway's own must be added here; the build, the
// registry's loading and the gateway read only this list.
func ReservedNames() []string {
	return []string{AgentSwitch, ConfirmAction, DescribeTool}
}

// Reserved says why no tool may be called id, as the end of a sentence; empty if the id is
// allowed. A name that differs from a reserved one only in case, dashes or underscores is
// reserved too: a model would confuse them.
func Reserved(id string) string {
	for _, name := range ReservedNames() {
		switch {
		case id == name:
			return "belongs to a tool that is built in"
		case Folded(id) == Folded(name):
			return fmt.Sprintf("differs from %q, which is built in, in nothing that a model would notice", name)
		}
	}
	return ""
}

// Lookalikes finds ids that differ only in case, dashes or underscores: each except the
// alphabetically first of them, mapped to that first.
func Lookalikes(ids []string) map[string]string {
	first, twins := map[string]string{}, map[string]string{}
	for _, id := range slices.Sorted(slices.Values(ids)) {
		if before, has := first[Folded(id)]; !has {
			first[Folded(id)] = id
		} else if before != id {
			twins[id] = before
		}
	}
	return twins
}

// Folded returns a name without the differences that Lookalikes ignores.
func Folded(id string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(id))
}
