package caldav

import (
	"encoding/xml"
	"errors"
	"fmt"
	"strings"
	"time"
)

// query is a calendar-query REPORT (RFC 4791 section 7.8) for the events of a range.
// The times are those of the format, so nothing in it needs an escape.
const query = `<?xml version="1.0" encoding="utf-8"?>
<C:calendar-query xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><D:prop><D:getetag/><C:calendar-data/></D:prop>` +
	`<C:filter><C:comp-filter name="VCALENDAR"><C:comp-filter name="VEVENT"><C:time-range start="%s" end="%s"/></C:comp-filter></C:comp-filter></C:filter></C:calendar-query>`

const utcForm = "20060102T150405Z"

// first is the earliest time that is asked for: servers refuse years that they cannot
// write.
var first = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)

func queryFor(from, to time.Time) string {
	if from.Before(first) {
		from = first
	}
	return fmt.Sprintf(query, from.UTC().Format(utcForm), to.UTC().Format(utcForm))
}

// multistatus is the answer to it (RFC 4918 section 14.16).
type multistatus struct {
	XMLName   xml.Name   `xml:"DAV: multistatus"`
	Responses []response `xml:"DAV: response"`
}

type response struct {
	Href   string  `xml:"DAV: href"`
	Status string  `xml:"DAV: status"`
	Props  []props `xml:"DAV: propstat"`
}

type props struct {
	Status string `xml:"DAV: status"`
	Prop   struct {
		ETag string `xml:"DAV: getetag"`
		Data string `xml:"urn:ietf:params:xml:ns:caldav calendar-data"`
	} `xml:"DAV: prop"`
}

// object is a calendar object of an answer.
type object struct {
	href, etag string
	data       string // empty where err is set
	err        error
}

var (
	errNoObject  = errors.New("caldav: the answer has no calendar data for it")
	errTruncated = errors.New("caldav: the server has left events out, there are too many")
)

// parseAnswer reads a multistatus.
func parseAnswer(data []byte) ([]object, error) {
	var m multistatus
	if err := xml.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("caldav: the answer is no multistatus: %w", err)
	}
	var all []object
	for _, r := range m.Responses {
		o := object{href: r.Href, err: errNoObject}
		for _, p := range r.Props {
			if p.Prop.Data != "" && (p.Status == "" || statusOf(p.Status) == "200") {
				o = object{href: r.Href, etag: p.Prop.ETag, data: p.Prop.Data}
			}
		}
		switch status := statusOf(r.Status); {
		case status == "507": // RFC 4791 section 7.8: number-of-matches-within-limits
			o.err = errTruncated
		case status == "404" && o.data == "":
			continue // removed meanwhile
		}
		all = append(all, o)
	}
	return all, nil
}

// statusOf is the code of a status line.
func statusOf(line string) string {
	if parts := strings.Fields(line); len(parts) > 1 {
		return parts[1]
	}
	return ""
}
