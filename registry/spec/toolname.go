package spec

import (
	"fmt"
	"slices"
	"strings"
)

// ConfirmAction is the tool by which a model reports the user's spoken approval. The gateway declares it if spoken
// approval is allowed, and handles its calls before the registry's tools, which must not have that name.
const ConfirmAction = "confirm_action"

// AgentSwitch is the tool by which a model hands the conversation over to another agent.
const AgentSwitch = "agent_switch"

// DescribeTool is the built-in tool that gives a model the full guide of a tool. It is in every snapshot and not in
// files.
const DescribeTool = "describe_tool"

// ReservedNames lists the sorted ids of the gateway's own tools, which other tools must not have. Every own tool must
// be here; the build, the registry's loading and the gateway use only this list.
func ReservedNames() []string {
	return []string{AgentSwitch, ConfirmAction, DescribeTool}
}

// Reserved returns the reason why no tool may have that id, as the end of a sentence, or an empty string. A name that
// differs from a reserved one only in case, dashes or underscores is reserved too, because models would confuse them.
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

// Lookalikes finds ids that differ only in case, dashes or underscores, and maps each to the alphabetically first
// one.
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

// Folded removes the differences that Lookalikes ignores.
func Folded(id string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(id))
}
