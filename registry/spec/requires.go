package spec

import (
	"fmt"

	"voicegw/registry/document"
)

// requires parses the scopes that the tool requires.
func (r *specReader) requires() []string {
	v, has := r.object["requires"]
	if !has {
		return nil
	}
	list, ok := v.([]any)
	switch {
	case !ok || len(list) == 0:
		r.problem(document.Pointer{"requires"},
			"\"requires\" is a list of scopes, such as [\"calendar.write\"], got %s; for a tool that everybody "+
				"has, leave it out.", document.Describe(v))
		return nil
	case len(list) > MaxScopes:
		r.problem(document.Pointer{"requires"},
			"A conversation has at most %d scopes, and the tool requires %d, so nobody would have it; require fewer.", MaxScopes, len(list))
		return nil
	}
	form := fmt.Sprintf("A scope has 1 to %d letters, digits and the signs . _ : / -", MaxScopeBytes)
	return r.words(document.Pointer{"requires"}, list, "The scope ", form, ValidScope)
}
