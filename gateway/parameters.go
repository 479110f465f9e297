package gateway

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"voicegw/internal/user"
)

// listParameters reads the parameters of a list: it returns the user that ?user= names, empty if it names
// nobody, or says what is wrong. known are the other parameters that the list has.
func listParameters(q url.Values, known ...string) (who, wrong string) {
	known = append([]string{"user"}, known...)
	for name := range q {
		if !slices.Contains(known, name) {
			last := len(known) - 1
			return "", fmt.Sprintf("There is no parameter %q; there are %s and %s.", clip(name), strings.Join(known[:last], ", "), known[last])
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
