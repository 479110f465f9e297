package registry

import (
	"fmt"
	"slices"
	"strings"
)

// ConfirmAction is the tool with which a model says what the user has answered aloud to
// a question for approval. The gateway declares it itself where that is allowed, and
// takes its calls before any tool of the registry; no file may hold one of that name.
const ConfirmAction = "confirm_action"

// ReservedNames lists the ids that the gateway itself declares to models, sorted: no
// tool may have one of them. Whoever adds a tool of the gateway's own adds it here; the
// build, the registry's loading and the gateway read this list and no other.
func ReservedNames() []string { return []string{ConfirmAction, DescribeTool} }

// Reserved says why no tool may be called id, as the end of a sentence; empty if it may.
// A name that differs from a reserved one in case, dashes or underscores alone is
// reserved too: a model would take one for the other.
func Reserved(id string) string {
	for _, name := range ReservedNames() {
		switch {
		case id == name:
			return "belongs to a tool that is built in"
		case folded(id) == folded(name):
			return fmt.Sprintf("differs from %q, which is built in, in nothing that a model would notice", name)
		}
	}
	return ""
}

// Lookalikes finds ids that differ in case, dashes or underscores alone: each but the
// first of them, in the order of the alphabet, with that first.
func Lookalikes(ids []string) map[string]string {
	first, twins := map[string]string{}, map[string]string{}
	for _, id := range slices.Sorted(slices.Values(ids)) {
		if before, has := first[folded(id)]; !has {
			first[folded(id)] = id
		} else if before != id {
			twins[id] = before
		}
	}
	return twins
}

// folded is what is left of a name when its spelling is not looked at.
func folded(id string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(id))
}
