package gateway

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"voicegw/internal/user"
)

// listParameters parses a list's parameters: it returns the user in ?user=, or the problem. known are the list's
// other parameters.
func listParameters(q url.Values, known ...string) (who, wrong string) {
	known = append([]string{"user"}, known...)
	for name := range q {
		if !slices.Contains(known, name) {
			last := len(known) - 1
			return "", fmt.Sprintf("Unknown parameter %q; use %s and %s.", clip(name), strings.Join(known[:last], ", "), known[last])
		}
	}
	name := q.Get("user")
	if name == "" {
		return "", ""
	}
	u, err := user.Stored(name)
	if err != nil {
		return "", "The parameter user " + err.Error() + "."
	}
	return u.String(), ""
}
