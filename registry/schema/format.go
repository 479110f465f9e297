package schema

import (
	"net/netip"
	"regexp"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// The forms of RFC 3339 section 5.6, as regular expressions.
const (
	dateForm = `[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])`
	timeForm = `([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?([zZ]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])`
)

var (
	timeOnly = regexp.MustCompile(`^` + timeForm + `$`)
	dateTime = regexp.MustCompile(`^` + dateForm + `[tT]` + timeForm + `$`)
)

// stricter are the formats that all providers and validators understand. Each has the library's check, and a function
// that rejects texts that other parsers reject, such as the signs in 10:+5:00Z and +1.2.3.4.
var stricter = map[string]func(string) bool{
	"date": nil, "email": nil, "ipv6": nil, "uri": nil, "uuid": nil,
	"time":      timeOnly.MatchString,
	"date-time": dateTime.MatchString,
	"ipv4": func(s string) bool {
		a, err := netip.ParseAddr(s)
		return err == nil && a.Is4()
	},
}

func formatChecks() map[string]func(any) bool {
	checks := map[string]func(any) bool{}
	for name, more := range stricter {
		library := jsonschema.Formats[name]
		checks[name] = func(v any) bool {
			s, text := v.(string)
			return !text || library(v) && (more == nil || more(s))
		}
	}
	return checks
}
