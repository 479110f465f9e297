package spec

import (
	"reflect"
	"slices"

	"voicegw/registry/document"
)

// Disagreements returns a problem for each field that must be equal for v to be a variant of the tool of. The cost, side
// effects and requirements of a call must not depend on the drawn version; arguments and answers may.
func Disagreements(of, v *Spec) []document.Problem {
	var problems []document.Problem
	differs := func(key, why string) {
		problems = append(problems, document.Problem{Path: document.Pointer{key}.String(),
			Message: "\"" + key + "\" must be that of " + of.ToolID + ", of which this is a version: " + why + "."})
	}
	for _, f := range []struct {
		key, why string
		same     bool
	}{
		{"category", "budgets and prompts go by it", of.Category == v.Category},
		{"sideEffects", "what a call may change must not depend on the version", of.SideEffects == v.SideEffects},
		{"requiresConfirmation", "whether a person is asked must not depend on the version",
			of.RequiresConfirmation == v.RequiresConfirmation},
		{"confirmWhen", "whether a person is asked must not depend on the version", reflect.DeepEqual(of.ConfirmWhen, v.ConfirmWhen)},
		{"allowedModes", "a user who has drawn the version would lack the tool by voice or in text",
			sameSet(of.AllowedModes, v.AllowedModes)},
		{"requires", "who has the tool must not depend on the version", sameSet(of.Requires, v.Requires)},
		{"availability", "who has the tool must not depend on the version", reflect.DeepEqual(of.Availability, v.Availability)},
		{"rateLimit", "both versions count together", reflect.DeepEqual(of.RateLimit, v.RateLimit)},
		{"idempotencyKey", "a deed that one version has done must be known to the other", of.IdempotencyKey == v.IdempotencyKey},
	} {
		if !f.same {
			differs(f.key, f.why)
		}
	}
	if of.VariantOf != "" {
		problems = append(problems, document.Problem{Path: "/variantOf", Message: of.ToolID + " is itself a version of " +
			of.VariantOf + "; name that one."})
	}
	if of.Job != nil || v.Job != nil {
		problems = append(problems, document.Problem{Path: "/variantOf",
			Message: "A tool with long work has no versions side by side: a job may go on after its user has drawn another " +
				"version, which could not read its payload."})
	}
	if of.Version == v.Version {
		problems = append(problems, document.Problem{Path: "/version", Message: "The version " + v.Version + " is that of " +
			of.ToolID + ", too; the audit tells versions apart by it."})
	}
	return problems
}

func sameSet[T comparable](a, b []T) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(x T) bool { return !slices.Contains(b, x) })
}
