package ics

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/emersion/go-ical"

	"voicegw/internal/backends/calendar"
)

// product is the PRODID of written objects (RFC 5545 section 3.7.3).
const product = "-//voicegw//calendar//EN"

// write encodes a draft as an iCalendar object with the draft's key as UID. organizer is an e-mail address; without
// one, no server invites the attendees. The error is Draft.Check's, or that of the encoder.
func write(d calendar.Draft, organizer string) ([]byte, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	e := ical.NewEvent()
	now := d.Now
	if now.IsZero() {
		now = time.Now()
	}
	e.Props.SetText(ical.PropUID, d.Key)
	e.Props.SetDateTime(ical.PropDateTimeStamp, now.UTC())
	e.Props.SetDateTime(ical.PropDateTimeStart, d.Start.UTC())
	e.Props.SetDateTime(ical.PropDateTimeEnd, d.End.UTC())
	e.Props.SetText(ical.PropSummary, oneLine(d.Title))
	if s := plain(d.Description, calendar.EventDescriptionRunes); s != "" {
		e.Props.SetText(ical.PropDescription, s)
	}
	if len(d.Attendees) > 0 && organizer != "" {
		e.Props.Set(addressProp(ical.PropOrganizer, organizer))
	}
	for _, a := range d.Attendees {
		p := addressProp(ical.PropAttendee, a)
		p.Params.Set(ical.ParamParticipationStatus, "NEEDS-ACTION")
		p.Params.Set(ical.ParamRole, "REQ-PARTICIPANT")
		p.Params.Set(ical.ParamRSVP, "TRUE")
		e.Props.Add(p)
	}
	if d.Meeting && d.MeetingURL != "" {
		if err := setMeeting(e, d.MeetingURL); err != nil {
			return nil, err
		}
	}
	c := ical.NewCalendar()
	c.Props.SetText(ical.PropVersion, "2.0")
	c.Props.SetText(ical.PropProductID, product)
	c.Children = append(c.Children, e.Component)
	var b bytes.Buffer
	if err := ical.NewEncoder(&b).Encode(c); err != nil {
		return nil, fmt.Errorf("ics: encoding an event: %w", err)
	}
	return fold(b.Bytes()), nil
}

// setMeeting sets the link in the property of RFC 7986 section 5.11 and in the location, which every program shows.
func setMeeting(e *ical.Event, link string) error {
	u, err := url.Parse(link)
	if err != nil || u.Host == "" {
		return fmt.Errorf("ics: the meeting's link is not a URL")
	}
	p := ical.NewProp(ical.PropConference)
	p.Params.Set(ical.ParamValue, string(ical.ValueURI))
	p.Params.Set(ical.ParamFeature, string(ical.ConferenceVideo))
	p.Value = u.String()
	e.Props.Set(p)
	e.Props.SetText(ical.PropLocation, u.String())
	return nil
}

func addressProp(name, address string) *ical.Prop {
	p := ical.NewProp(name)
	p.Value = "mailto:" + address
	return p
}

func oneLine(s string) string {
	return strings.Join(strings.Fields(plain(s, calendar.EventTitleRunes)), " ")
}

const maxLine = 75 // bounds a line without its end in bytes (RFC 5545 section 3.1)

// fold breaks long lines between characters.
func fold(data []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.SplitSeq(bytes.TrimSuffix(data, []byte("\r\n")), []byte("\r\n")) {
		room := maxLine
		for len(line) > room {
			cut := room
			for cut > 1 && !utf8.RuneStart(line[cut]) {
				cut--
			}
			b.Write(line[:cut])
			b.WriteString("\r\n ")
			line, room = line[cut:], maxLine-1
		}
		b.Write(line)
		b.WriteString("\r\n")
	}
	return b.Bytes()
}
