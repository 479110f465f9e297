package caldav

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// query is a calendar-query REPORT (RFC 4791 section 7.8) for the events of a range. Its times need no escaping.
const query = `<?xml version="1.0" encoding="utf-8"?>
<C:calendar-query xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><D:prop><D:getetag/><C:calendar-data/></D:prop>` +
	`<C:filter><C:comp-filter name="VCALENDAR"><C:comp-filter name="VEVENT"><C:time-range start="%s" ` +
	`end="%s"/></C:comp-filter></C:comp-filter></C:filter></C:calendar-query>`

const utcForm = "20060102T150405Z"

// first is the earliest time of a query: servers refuse earlier years.
var first = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)

func queryFor(from, to time.Time) string {
	if from.Before(first) {
		from = first
	}
	return fmt.Sprintf(query, from.UTC().Format(utcForm), to.UTC().Format(utcForm))
}

// response is a part of a multistatus answer (RFC 4918 section 14.16).
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

type object struct {
	href, etag string
	data       string // empty if err is set
	err        error
}

var (
	errMalformed = errors.New("caldav: the answer is not a multistatus")
	errNoObject  = errors.New("caldav: the answer has no calendar data of the object")
	errTruncated = errors.New("caldav: the server omitted events because there are too many")
)

// eachObject reads a multistatus and calls f with each calendar object, until the end or an error of f. The error wraps
// errMalformed, or is an error of the reader, of the XML decoder or of f.
func eachObject(answer io.Reader, f func(object) error) error {
	// The decoder gives each response to f and keeps none.
	var multistatus struct {
		XMLName   xml.Name
		Responses responses `xml:"DAV: response"`
	}
	multistatus.Responses = f
	err := xml.NewDecoder(answer).Decode(&multistatus)
	switch name := multistatus.XMLName; {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: it is empty", errMalformed)
	case name != xml.Name{} && name != xml.Name{Space: "DAV:", Local: "multistatus"}:
		return fmt.Errorf("%w: it begins with %.60q", errMalformed, name.Local)
	}
	return err
}

type responses func(object) error

// UnmarshalXML implements xml.Unmarshaler for one response.
func (f *responses) UnmarshalXML(d *xml.Decoder, start xml.StartElement) error {
	var r response
	if err := d.DecodeElement(&r, &start); err != nil {
		return err
	}
	if o, ok := r.object(); ok {
		return (*f)(o)
	}
	return nil
}

// object returns the calendar object of a response, or false if the object no longer exists.
func (r *response) object() (object, bool) {
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
		return object{}, false
	}
	return o, true
}

func statusOf(line string) string {
	if parts := strings.Fields(line); len(parts) > 1 {
		return parts[1]
	}
	return ""
}
