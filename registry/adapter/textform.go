package adapter

import "voicegw/registry/format"

// textForm describes the texts of a "format".
type textForm struct {
	// loose matches every text of the format, and others.
	loose string
	// tight matches texts most of which are of the format, to find some of them.
	tight string
	// samples are texts of the format.
	samples []string
	// most is how many characters a text of the format has at most; 0 means no bound.
	most int
}

const (
	octet    = `(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])`
	hostForm = `[a-z0-9]+(\.[a-z0-9]+)*`
)

// textForms are the formats that a schema may name.
var textForms = map[string]textForm{
	"date":      {loose: `^` + format.Date + `$`, samples: []string{"2026-01-31"}},
	"time":      {loose: `^` + format.Time + `$`, samples: []string{"09:30:00Z", "09:30:00+02:00"}},
	"date-time": {loose: `^` + format.Date + `[tT]` + format.Time + `$`, samples: []string{"2026-01-31T09:30:00Z"}},
	"uuid":      {loose: `^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`, samples: []string{"123e4567-e89b-12d3-a456-426614174000"}},
	"ipv4":      {loose: `^` + octet + `(\.` + octet + `){3}$`, samples: []string{"192.0.2.1", "10.0.0.1", "127.0.0.1"}},
	"ipv6": {most: 45, loose: `^[0-9A-Fa-f:.]+$`, tight: `^([0-9a-fA-F]{1,4}(:[0-9a-fA-F]{1,4}){7}|([0-9a-fA-F]{1,4}:){1,6}:[0-9a-fA-F]{1,4}|::[0-9a-fA-F]{0,4})$`,
		samples: []string{"2001:db8::1", "::1"}},
	"email": {most: 254, loose: `(?s)^.+@.+$`, tight: `^[A-Za-z0-9._+-]{0,20}[A-Za-z0-9]@([A-Za-z0-9]{1,30}[.])*[A-Za-z0-9]{1,30}$`, samples: []string{"ada@example.org"}},
	"uri": {loose: `(?s)^[A-Za-z][A-Za-z0-9+.-]*:.*$`,
		tight:   `^([a-z]+://` + hostForm + `(:[1-9][0-9]{0,3})?(/[A-Za-z0-9/._~?=&#-]*)?|[a-z]+:[A-Za-z0-9@.+-]+)$`,
		samples: []string{"https://example.org/a"}},
}
