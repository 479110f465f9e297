package registry

import (
	"slices"

	"voicegw/registry/spec"
)

// NeedsApproval reports whether a person must approve the call with its current arguments. If an argument of a
// condition is missing or has another type, approval is needed.
func (p *Prepared) NeedsApproval() bool {
	t := p.tool
	return t.RequiresConfirmation && (len(t.ConfirmWhen) == 0 ||
		slices.ContainsFunc(t.ConfirmWhen, func(c spec.ConfirmWhen) bool { return c.Asks(p.value) }))
}
