// Package format checks texts against the "format" of a schema. Each check is that of
// the library that validates schemas, and besides refuses some texts that the library
// accepts: it allows signs in numbers, as in 10:+5:00Z or +1.2.3.4, which other parsers refuse.
package format

import (
	"maps"
	"net/netip"
	"regexp"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// The forms of RFC 3339 section 5.6, as regular expressions without anchors.
const (
	Date = `[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])`
	Time = `([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?([zZ]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])`
)

var (
	timeForm     = regexp.MustCompile(`^` + Time + `$`)
	dateTimeForm = regexp.MustCompile(`^` + Date + `[tT]` + Time + `$`)
)

// stricter are expressions that texts of a format must match in addition to the library's check.
var stricter = map[string]func(string) bool{
	"date": nil, "email": nil, "ipv6": nil, "uri": nil, "uuid": nil,
	"time":      timeForm.MatchString,
	"date-time": dateTimeForm.MatchString,
	"ipv4": func(s string) bool {
		a, err := netip.ParseAddr(s)
		return err == nil && a.Is4()
	},
}

// Names lists the formats that a schema may name, sorted.
func Names() []string { return slices.Sorted(maps.Keys(stricter)) }

// Checks returns a check for each format; a value that is not a string passes every check.
// Use it as the Formats of a [jsonschema.Compiler]. The caller owns the map.
func Checks() map[string]func(any) bool {
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
