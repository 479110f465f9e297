package registry

import (
	"slices"

	"voicegw/registry/spec"
)

// NeedsApproval reports whether a person must approve the call, with its arguments as they are now: completed
// with defaults, and lowered. It is in doubt if an argument that a condition compares is missing or of another
// type; then it does.
func (p *Prepared) NeedsApproval() bool {
	t := p.tool
	return t.RequiresConfirmation && (len(t.ConfirmWhen) == 0 || slices.ContainsFunc(t.ConfirmWhen, func(c spec.ConfirmWhen) bool { return c.Asks(p.value) }))
}
