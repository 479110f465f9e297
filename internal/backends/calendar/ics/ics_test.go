package ics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/internal/backends/calendar"
)

func zoneOf(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// object puts components into a calendar.
func iCalendar(components ...string) []byte {
	return []byte("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//test//EN\r\n" +
		strings.ReplaceAll(strings.Join(components, ""), "\n", "\r\n") + "END:VCALENDAR\r\n")
}

func event(lines ...string) string {
	return "BEGIN:VEVENT\nUID:one\nDTSTAMP:20260101T000000Z\n" + strings.Join(lines, "\n") + "\nEND:VEVENT\n"
}

const form = "2006-01-02T15:04Z"

// times writes the busy times of data in a range, sorted.
func times(t *testing.T, r reader, data []byte, from, to string) []string {
	t.Helper()
	found := busy(t, r, data, from, to)
	if len(found.Unread) > 0 {
		t.Errorf("unread: %+v", found.Unread)
	}
	var out []string
	for _, e := range found.Events {
		out = append(out, e.Start.Format(form)+" "+e.End.Format(form))
	}
	slices.Sort(out)
	return out
}

func busy(t *testing.T, r reader, data []byte, from, to string) calendar.Found {
	t.Helper()
	begin, err1 := time.Parse(form, from)
	end, err2 := time.Parse(form, to)
	found, err3 := r.Busy(t.Context(), data, begin, end)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	return found
}

// outlook is a zone defined only by its VTIMEZONE.
const outlook = `BEGIN:VTIMEZONE
TZID:Somewhere Standard Time
BEGIN:STANDARD
DTSTART:16010101T030000
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=10
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:16010101T020000
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=3
END:DAYLIGHT
END:VTIMEZONE
`

// TestTimes: each row was worked out by hand. The clocks change on 29 March and 25 October 2026 in Europe, on 8 March and
// 1 November in New York.
func TestTimes(t *testing.T) {
	berlin := reader{Zone: zoneOf(t, "Europe/Berlin")}
	for _, tc := range []struct {
		name     string
		r        reader
		parts    []string
		from, to string
		want     []string
	}{
		{"utc", berlin, []string{event("DTSTART:20261123T090000Z", "DTEND:20261123T100000Z")},
			"2026-11-23T00:00Z", "2026-11-24T00:00Z", []string{"2026-11-23T09:00Z 2026-11-23T10:00Z"}},
		{"a zone elsewhere", berlin, []string{event("DTSTART;TZID=America/New_York:20261123T090000", "DTEND;TZID=America/New_York:20261123T100000")},
			"2026-11-23T00:00Z", "2026-11-24T00:00Z", []string{"2026-11-23T14:00Z 2026-11-23T15:00Z"}},
		{"begins in one zone and ends in another", berlin, []string{event("DTSTART;TZID=Europe/Berlin:20261123T090000", "DTEND;TZID=America/New_York:20261123T110000")},
			"2026-11-23T00:00Z", "2026-11-24T00:00Z", []string{"2026-11-23T08:00Z 2026-11-23T16:00Z"}},
		{"floating", berlin, []string{event("DTSTART:20261123T090000", "DURATION:PT45M")},
			"2026-11-23T00:00Z", "2026-11-24T00:00Z", []string{"2026-11-23T08:00Z 2026-11-23T08:45Z"}},
		{"a day", berlin, []string{event("DTSTART;VALUE=DATE:20261123")},
			"2026-11-23T12:00Z", "2026-11-24T00:00Z", []string{"2026-11-22T23:00Z 2026-11-23T23:00Z"}},
		{"a day of 23 hours", berlin, []string{event("DTSTART;VALUE=DATE:20260329", "DTEND;VALUE=DATE:20260330")},
			"2026-03-29T12:00Z", "2026-03-30T00:00Z", []string{"2026-03-28T23:00Z 2026-03-29T22:00Z"}},
		{"three days, the clocks change on one", berlin, []string{event("DTSTART;VALUE=DATE:20261024", "DURATION:P3D")},
			"2026-10-25T00:00Z", "2026-10-26T00:00Z", []string{"2026-10-23T22:00Z 2026-10-26T23:00Z"}},
		{"a day that ends on itself", berlin, []string{event("DTSTART;VALUE=DATE:20261123", "DTEND;VALUE=DATE:20261123")},
			"2026-11-23T12:00Z", "2026-11-24T00:00Z", []string{"2026-11-22T23:00Z 2026-11-23T23:00Z"}},
		{"no length is no time", berlin, []string{event("DTSTART:20261123T090000Z")},
			"2026-11-23T00:00Z", "2026-11-24T00:00Z", nil},
		{"weekly at nine, whatever the clocks", berlin, []string{event("DTSTART;TZID=Europe/Berlin:20261012T090000", "DTEND;TZID=Europe/Berlin:20261012T093000", "RRULE:FREQ=WEEKLY")},
			"2026-10-19T00:00Z", "2026-11-03T00:00Z",
			[]string{"2026-10-19T07:00Z 2026-10-19T07:30Z", "2026-10-26T08:00Z 2026-10-26T08:30Z", "2026-11-02T08:00Z 2026-11-02T08:30Z"}},
		{"an exception, several in one line, and one in UTC", berlin, []string{event("DTSTART;TZID=Europe/Berlin:20261019T090000", "DURATION:PT30M", "RRULE:FREQ=DAILY;COUNT=6",
			"EXDATE;TZID=Europe/Berlin:20261020T090000,20261021T090000", "EXDATE:20261023T070000Z")},
			"2026-10-01T00:00Z", "2026-10-31T00:00Z",
			[]string{"2026-10-19T07:00Z 2026-10-19T07:30Z", "2026-10-22T07:00Z 2026-10-22T07:30Z", "2026-10-24T07:00Z 2026-10-24T07:30Z"}},
		{"an exception that is a day", berlin, []string{event("DTSTART;TZID=Europe/Berlin:20261019T090000", "DURATION:PT30M", "RRULE:FREQ=DAILY;COUNT=2", "EXDATE;VALUE=DATE:20261019")},
			"2026-10-01T00:00Z", "2026-10-31T00:00Z", []string{"2026-10-20T07:00Z 2026-10-20T07:30Z"}},
		{"one moved to another day, and one cancelled", berlin, []string{
			event("DTSTART;TZID=Europe/Berlin:20261019T090000", "DURATION:PT30M", "RRULE:FREQ=DAILY;COUNT=3"),
			event("RECURRENCE-ID;TZID=Europe/Berlin:20261020T090000", "DTSTART;TZID=Europe/Berlin:20261022T150000", "DURATION:PT1H"),
			event("RECURRENCE-ID:20261021T070000Z", "DTSTART:20261021T070000Z", "DURATION:PT1H", "STATUS:CANCELLED")},
			"2026-10-01T00:00Z", "2026-10-31T00:00Z", []string{"2026-10-19T07:00Z 2026-10-19T07:30Z", "2026-10-22T13:00Z 2026-10-22T14:00Z"}},
		{"moved into the range from outside", berlin, []string{
			event("DTSTART:20261001T090000Z", "DURATION:PT30M", "RRULE:FREQ=MONTHLY"),
			event("RECURRENCE-ID:20261101T090000Z", "DTSTART:20261020T090000Z", "DURATION:PT1H")},
			"2026-10-15T00:00Z", "2026-10-31T00:00Z", []string{"2026-10-20T09:00Z 2026-10-20T10:00Z"}},
		{"an hour later from the third on", berlin, []string{
			event("DTSTART;TZID=Europe/Berlin:20261005T090000", "DURATION:PT30M", "RRULE:FREQ=WEEKLY;COUNT=5"),
			event("RECURRENCE-ID;RANGE=THISANDFUTURE;TZID=Europe/Berlin:20261019T090000", "DTSTART;TZID=Europe/Berlin:20261019T100000", "DURATION:PT1H")},
			"2026-10-01T00:00Z", "2026-11-30T00:00Z", []string{
				"2026-10-05T07:00Z 2026-10-05T07:30Z", "2026-10-12T07:00Z 2026-10-12T07:30Z",
				"2026-10-19T08:00Z 2026-10-19T09:00Z", "2026-10-26T09:00Z 2026-10-26T10:00Z", "2026-11-02T09:00Z 2026-11-02T10:00Z"}},
		{"last Friday of the month, until a day", berlin, []string{event("DTSTART:20260130T100000Z", "DURATION:PT1H", "RRULE:FREQ=MONTHLY;BYDAY=-1FR;UNTIL=20260327")},
			"2026-02-01T00:00Z", "2026-06-01T00:00Z", []string{"2026-02-27T10:00Z 2026-02-27T11:00Z", "2026-03-27T10:00Z 2026-03-27T11:00Z"}},
		{"until a time of UTC that is in winter", berlin, []string{event("DTSTART;TZID=Europe/Berlin:20261024T090000", "DURATION:PT1H", "RRULE:FREQ=DAILY;UNTIL=20261026T080000Z")},
			"2026-10-25T00:00Z", "2026-11-01T00:00Z", []string{"2026-10-25T08:00Z 2026-10-25T09:00Z", "2026-10-26T08:00Z 2026-10-26T09:00Z"}},
		{"dates besides the rule, one a period", berlin, []string{event("DTSTART:20261001T090000Z", "DURATION:PT1H", "RDATE:20261005T100000Z,20261006T110000Z", "RDATE;VALUE=PERIOD:20261007T120000Z/PT1H")},
			"2026-10-02T00:00Z", "2026-10-31T00:00Z", []string{"2026-10-05T10:00Z 2026-10-05T11:00Z", "2026-10-06T11:00Z 2026-10-06T12:00Z", "2026-10-07T12:00Z 2026-10-07T13:00Z"}},
		{"periods of their own lengths, by their end and by how long", berlin, []string{event("DTSTART:20261001T090000Z", "DURATION:PT1H",
			"RDATE;VALUE=PERIOD:20261007T120000Z/20261007T150000Z,20261008T120000Z/PT15M", "RDATE;VALUE=PERIOD;TZID=Europe/Berlin:20261009T120000/20261009T123000")},
			"2026-10-02T00:00Z", "2026-10-31T00:00Z", []string{"2026-10-07T12:00Z 2026-10-07T15:00Z", "2026-10-08T12:00Z 2026-10-08T12:15Z", "2026-10-09T10:00Z 2026-10-09T10:30Z"}},
		{"periods over the night in which the clocks change", berlin, []string{event("DTSTART;TZID=Europe/Berlin:20261001T090000", "DURATION:PT1H",
			"RDATE;VALUE=PERIOD;TZID=Europe/Berlin:20261024T220000/20261025T060000", "RDATE;VALUE=PERIOD;TZID=Europe/Berlin:20261024T120000/P1D", "RDATE;VALUE=PERIOD;TZID=Europe/Berlin:20261024T180000/PT24H")},
			"2026-10-25T00:00Z", "2026-10-31T00:00Z", []string{"2026-10-24T10:00Z 2026-10-25T11:00Z", "2026-10-24T16:00Z 2026-10-25T16:00Z", "2026-10-24T20:00Z 2026-10-25T05:00Z"}},
		{"a period at a start of the rule sets its length", berlin, []string{event("DTSTART:20261005T090000Z", "DURATION:PT30M", "RRULE:FREQ=DAILY;COUNT=3", "RDATE;VALUE=PERIOD:20261006T090000Z/PT2H", "EXDATE:20261007T090000Z")},
			"2026-10-01T00:00Z", "2026-10-31T00:00Z", []string{"2026-10-05T09:00Z 2026-10-05T09:30Z", "2026-10-06T09:00Z 2026-10-06T11:00Z"}},
		{"a long period reaches into the range", berlin, []string{event("DTSTART:20260901T090000Z", "DURATION:PT1H", "RDATE;VALUE=PERIOD:20261001T090000Z/P14D")},
			"2026-10-10T00:00Z", "2026-10-11T00:00Z", []string{"2026-10-01T09:00Z 2026-10-15T09:00Z"}},
		{"moved from some day on, a period keeps its length", berlin, []string{
			event("DTSTART:20261005T090000Z", "DURATION:PT30M", "RRULE:FREQ=DAILY;COUNT=2", "RDATE;VALUE=PERIOD:20261009T090000Z/PT3H"),
			event("RECURRENCE-ID;RANGE=THISANDFUTURE:20261006T090000Z", "DTSTART:20261006T100000Z", "DURATION:PT1H")},
			"2026-10-01T00:00Z", "2026-10-31T00:00Z", []string{"2026-10-05T09:00Z 2026-10-05T09:30Z", "2026-10-06T10:00Z 2026-10-06T11:00Z", "2026-10-09T10:00Z 2026-10-09T13:00Z"}},
		{"a period that replaces and one that is changed", berlin, []string{
			event("DTSTART:20261005T090000Z", "DURATION:PT30M", "RDATE;VALUE=PERIOD:20261009T090000Z/PT3H"),
			event("RECURRENCE-ID:20261009T090000Z", "DTSTART:20261009T090000Z", "DURATION:PT45M")},
			"2026-10-06T00:00Z", "2026-10-31T00:00Z", []string{"2026-10-09T09:00Z 2026-10-09T09:45Z"}},
		{"yearly on 29 February", berlin, []string{event("DTSTART;VALUE=DATE:20240229", "RRULE:FREQ=YEARLY")},
			"2028-02-28T00:00Z", "2028-03-02T00:00Z", []string{"2028-02-28T23:00Z 2028-02-29T23:00Z"}},
		{"the start does not fit the rule but counts", berlin, []string{event("DTSTART:20261123T090000Z", "DURATION:PT1H", "RRULE:FREQ=WEEKLY;BYDAY=TU;COUNT=2")},
			"2026-11-23T00:00Z", "2026-12-31T00:00Z", []string{"2026-11-23T09:00Z 2026-11-23T10:00Z", "2026-11-24T09:00Z 2026-11-24T10:00Z", "2026-12-01T09:00Z 2026-12-01T10:00Z"}},
		{"a series of years ago", berlin, []string{event("DTSTART:20060102T090000Z", "DURATION:PT1H", "RRULE:FREQ=DAILY")},
			"2026-11-23T00:00Z", "2026-11-24T00:00Z", []string{"2026-11-23T09:00Z 2026-11-23T10:00Z"}},
		{"longer than the range", berlin, []string{event("DTSTART:20261101T000000Z", "DTEND:20261201T000000Z")},
			"2026-11-10T00:00Z", "2026-11-11T00:00Z", []string{"2026-11-01T00:00Z 2026-12-01T00:00Z"}},
		{"touches the range at both ends", berlin, []string{
			event("DTSTART:20261123T080000Z", "DTEND:20261123T090000Z"), event("DTSTART:20261123T100000Z", "DTEND:20261123T110000Z")},
			"2026-11-23T09:00Z", "2026-11-23T10:00Z", nil},
		{"in the hour that does not exist", reader{}, []string{event("DTSTART;TZID=America/New_York:20260308T023000", "DURATION:PT1H")},
			"2026-03-08T00:00Z", "2026-03-09T00:00Z", []string{"2026-03-08T07:30Z 2026-03-08T08:30Z"}},
		{"in the repeated hour", reader{}, []string{event("DTSTART;TZID=America/New_York:20261101T013000", "DURATION:PT1H")},
			"2026-11-01T00:00Z", "2026-11-02T00:00Z", []string{"2026-11-01T05:30Z 2026-11-01T06:30Z"}},
		{"Outlook's zone, winter and summer", reader{}, []string{outlook,
			event("DTSTART;TZID=Somewhere Standard Time:20260328T090000", "DURATION:PT1H", "RRULE:FREQ=DAILY;COUNT=2")},
			"2026-03-01T00:00Z", "2026-04-01T00:00Z", []string{"2026-03-28T08:00Z 2026-03-28T09:00Z", "2026-03-29T07:00Z 2026-03-29T08:00Z"}},
		{"Outlook's zone, in the gap and in the repeated hour", reader{}, []string{outlook,
			event("DTSTART;TZID=Somewhere Standard Time:20260329T023000", "DURATION:PT1H", "RDATE;TZID=Somewhere Standard Time:20261025T023000")},
			"2026-01-01T00:00Z", "2027-01-01T00:00Z", []string{"2026-03-29T01:30Z 2026-03-29T02:30Z", "2026-10-25T00:30Z 2026-10-25T01:30Z"}},
		{"a zone behind a prefix", reader{}, []string{event("DTSTART;TZID=/freeassociation.sourceforge.net/Europe/Berlin:20261123T090000", "DURATION:PT1H")},
			"2026-11-23T00:00Z", "2026-11-24T00:00Z", []string{"2026-11-23T08:00Z 2026-11-23T09:00Z"}},
		{"free, cancelled, declined by its owner, and declined by another person", reader{Email: "Me@example.com"}, []string{
			event("DTSTART:20261123T010000Z", "DURATION:PT1H", "TRANSP:TRANSPARENT"),
			strings.Replace(event("DTSTART:20261123T020000Z", "DURATION:PT1H", "STATUS:CANCELLED"), "UID:one", "UID:two", 1),
			strings.Replace(event("DTSTART:20261123T030000Z", "DURATION:PT1H", "ATTENDEE;PARTSTAT=DECLINED:MAILTO:me@example.com"), "UID:one", "UID:three", 1),
			strings.Replace(event("DTSTART:20261123T040000Z", "DURATION:PT1H", "ATTENDEE;PARTSTAT=DECLINED:mailto:you@example.com"), "UID:one", "UID:four", 1)},
			"2026-11-23T00:00Z", "2026-11-24T00:00Z", []string{"2026-11-23T04:00Z 2026-11-23T05:00Z"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, times(t, tc.r, iCalendar(tc.parts...), tc.from, tc.to)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestUnread: an unreadable event is named, and hides no other.
func TestUnread(t *testing.T) {
	for name, tc := range map[string]struct {
		lines []string
		want  error
	}{
		"a reversed period":      {[]string{"DTSTART:20261123T090000Z", "DURATION:PT1H", "RDATE;VALUE=PERIOD:20261123T120000Z/20261123T110000Z"}, ErrMalformed},
		"half a period":          {[]string{"DTSTART:20261123T090000Z", "DURATION:PT1H", "RDATE;VALUE=PERIOD:20261123T120000Z/"}, ErrMalformed},
		"no start":               {[]string{"SUMMARY:x"}, ErrMalformed},
		"a bad time":             {[]string{"DTSTART:soon"}, ErrMalformed},
		"an unknown zone":        {[]string{"DTSTART;TZID=Mars/Olympus:20261123T090000", "DURATION:PT1H"}, ErrZone},
		"the machine's own zone": {[]string{"DTSTART;TZID=Local:20261123T090000", "DURATION:PT1H"}, ErrZone},
		"a bad rule":             {[]string{"DTSTART:20261123T090000Z", "DURATION:PT1H", "RRULE:FREQ=OFTEN"}, ErrRule},
		"every second":           {[]string{"DTSTART:20261123T090000Z", "DURATION:PT1H", "RRULE:FREQ=SECONDLY"}, ErrRule},
		"every minute, twice":    {[]string{"DTSTART:20261123T090000Z", "DURATION:PT1H", "RRULE:FREQ=MINUTELY;COUNT=2"}, ErrRule},
		"hours without end":      {[]string{"DTSTART:20261123T090000Z", "DURATION:PT1H", "RRULE:FREQ=HOURLY;INTERVAL=24;BYHOUR=10"}, ErrRule},
		"five rules":             {append([]string{"DTSTART:20261123T090000Z", "DURATION:PT1H"}, slices.Repeat([]string{"RRULE:FREQ=DAILY"}, 5)...), ErrRule},
		"before Outlook":         {[]string{"DTSTART:00010101T000000Z", "DURATION:PT1H", "RRULE:FREQ=DAILY"}, ErrMalformed},
		"hours of no day":        {[]string{"DTSTART:20261123T090000Z", "DURATION:PT1H", "RRULE:FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30"}, ErrRule},
		"Easter":                 {[]string{"DTSTART:20261123T090000Z", "DURATION:PT1H", "RRULE:FREQ=YEARLY;BYEASTER=400"}, ErrRule},
		"hourly for centuries":   {[]string{"DTSTART:18000101T000000Z", "DURATION:PT1H", "RRULE:FREQ=HOURLY"}, ErrRule},
		"ends before it begins":  {[]string{"DTSTART:20261123T090000Z", "DTEND:20261123T080000Z"}, ErrMalformed},
		"a bad duration":         {[]string{"DTSTART:20261123T090000Z", "DURATION:P1H"}, ErrMalformed},
		"a bad exception":        {[]string{"DTSTART:20261123T090000Z", "DURATION:PT1H", "RRULE:FREQ=DAILY", "EXDATE:never"}, ErrMalformed},
		"many times a day":       {[]string{"DTSTART:20261123T090000Z", "DURATION:PT1H", "RRULE:FREQ=DAILY;BYHOUR=1,2,3;BYMINUTE=" + numbers(60) + ";BYSECOND=" + numbers(60)}, ErrRule},
	} {
		t.Run(name, func(t *testing.T) {
			data := iCalendar(event(tc.lines...), strings.Replace(event("DTSTART:20261123T100000Z", "DURATION:PT1H"), "UID:one", "UID:good", 1))
			found := busy(t, reader{}, data, "2026-11-23T00:00Z", "2026-11-24T00:00Z")
			if len(found.Unread) != 1 || found.Unread[0].ID != "one" || !errors.Is(found.Unread[0].Err, tc.want) {
				t.Errorf("unread %+v, want %v", found.Unread, tc.want)
			}
			if len(found.Events) != 1 || found.Events[0].ID != "good" {
				t.Errorf("events %+v", found.Events)
			}
		})
	}
}

func numbers(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(i))
	}
	return strings.Join(all, ",")
}

func TestNotICalendar(t *testing.T) {
	for name, data := range map[string]string{
		"text":             "hello",
		"cut off":          "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:x\n",
		"closed twice":     "END:VCALENDAR\n",
		"nested deep":      strings.Repeat("BEGIN:VCALENDAR\n", 100) + strings.Repeat("END:VCALENDAR\n", 100),
		"folded to hide":   strings.Repeat("BEG\n IN:VCALENDAR\n", 100) + strings.Repeat("END:VCALENDAR\n", 100),
		"a long head":      "BEGIN:VCALENDAR\nX;Y=" + strings.Repeat("y", 1<<20) + ":z\nEND:VCALENDAR\n",
		"a long parameter": "BEGIN:VCALENDAR\nX;Y=\"a:" + strings.Repeat("y", 1<<20) + "\":z\nEND:VCALENDAR\n",
		"panics inside":    "BEGIN:VCALENDAR\nX;Y=\"a:b\"\nEND:VCALENDAR\n",
		"panics again":     "BEGIN:VCALENDAR\nX;Y=\"a:b\"z\nEND:VCALENDAR\n",
		"no end of line":   "BEGIN:VCALENDAR\nX;Y=z:\nA;B=c\nEND:VCALENDAR",
		"another kind":     "BEGIN:VCARD\nEND:VCARD\n",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := (reader{}).Busy(t.Context(), []byte(data), time.Unix(0, 0), time.Unix(1, 0)); !errors.Is(err, ErrMalformed) {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := (reader{}).Busy(t.Context(), make([]byte, maxBytes+1), time.Unix(0, 0), time.Unix(1, 0)); !errors.Is(err, errTooBig) {
		t.Errorf("too big: %v", err)
	}
	if found, err := (reader{}).Busy(t.Context(), nil, time.Unix(0, 0), time.Unix(1, 0)); err != nil || len(found.Events) > 0 {
		t.Errorf("an empty file: %+v %v", found, err)
	}
}

func TestContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (reader{}).Busy(ctx, iCalendar(event("DTSTART:20261123T090000Z")), time.Unix(0, 0), time.Unix(1, 0)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestDetails(t *testing.T) {
	data := iCalendar(event("DTSTART:20261123T090000Z", "DURATION:PT1H", `SUMMARY:Lunch\, tea \; all: a\\b "q", more`, `DESCRIPTION:one\ntwo\Nthree`+"\a",
		"LOCATION:https://meet.example.com/x", "CLASS:CONFIDENTIAL", "STATUS:TENTATIVE",
		"ATTENDEE;CN=\"Ada; L\":mailto:ada@example.com", "ATTENDEE:urn:uuid:1"))
	found := busy(t, reader{}, data, "2026-11-23T00:00Z", "2026-11-24T00:00Z")
	want := calendar.Found{Events: []calendar.Event{{
		ID: "one", Start: time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC), End: time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC),
		Tentative: true, Private: true, Title: `Lunch, tea ; all: a\b "q", more`, Description: "one\ntwo\nthree",
		Location: "https://meet.example.com/x", MeetingURL: "https://meet.example.com/x", Attendees: []string{"ada@example.com"},
	}}}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
}

func draft() calendar.Draft {
	start := time.Date(2026, 11, 23, 9, 0, 0, 0, time.FixedZone("", 3600))
	return calendar.Draft{
		Key: calendar.Key("ada", "Review", start, start.Add(time.Hour)), Title: "Review: \"A, B; C\" \\o/ 😀", Start: start, End: start.Add(time.Hour),
		Description: "First line\r\nsecond, " + strings.Repeat("ж", 300), Attendees: []string{"bob@example.com", "eve@example.org"},
		Meeting: true, MeetingURL: "https://meet.example.com/a?b=c,d;e", Now: time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC),
	}
}

// TestWrittenIsReadAgain: any draft is the same after writing and reading, and lines have their maximum length.
func TestWrittenIsReadAgain(t *testing.T) {
	d := draft()
	data, err := write(d, "ada@example.com")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(data), "\r\n") {
		if len(line) > maxLine || strings.ContainsAny(line, "\r\n") || !strings.Contains(string(data), "ORGANIZER:mailto:ada@example.com\r\n") {
			t.Errorf("a line of %d bytes: %q", len(line), line)
		}
	}
	got, err := reader{}.First(data, calendar.InvitationsNotSent)
	if err != nil {
		t.Fatal(err)
	}
	want := calendar.Event{
		ID: d.Key, Start: d.Start.UTC(), End: d.End.UTC(), Title: d.Title, Description: strings.ReplaceAll(d.Description, "\r", ""),
		Location: d.MeetingURL, MeetingURL: d.MeetingURL, Attendees: d.Attendees,
		Calendar: calendar.Primary, Invitations: calendar.InvitationsNotSent,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestNothingIsInjected: a text cannot end its line and begin another property.
func TestNothingIsInjected(t *testing.T) {
	d := draft()
	d.Title = "x\r\nRRULE:FREQ=DAILY"
	if _, err := write(d, ""); calendar.KindOf(err) != calendar.Invalid {
		t.Errorf("a title of two lines: %v", err)
	}
	d.Title = "x\u2028END:VEVENT"
	d.Description = "x\r\nRRULE:FREQ=DAILY\r\nEND:VEVENT"
	data, err := write(d, "")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "\nRRULE") || strings.Count(string(data), "\nEND:VEVENT") != 1 || strings.Contains(string(data), "ORGANIZER") {
		t.Errorf("%s", data)
	}
}

// TestRulesAgainstDays compares rules with a search through all days of three years.
func TestRulesAgainstDays(t *testing.T) {
	start := time.Date(2024, 1, 1, 9, 0, 0, 0, time.UTC) // a Monday
	for text, holds := range map[string]func(d time.Time) bool{
		"FREQ=DAILY;INTERVAL=3": func(d time.Time) bool { return int(d.Sub(start).Hours()/24)%3 == 0 },
		"FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE": func(d time.Time) bool {
			return int(d.Sub(start).Hours()/24)/7%2 == 0 && (d.Weekday() == 1 || d.Weekday() == 3)
		},
		"FREQ=MONTHLY;BYMONTHDAY=1,-1": func(d time.Time) bool { return d.Day() == 1 || d.AddDate(0, 0, 1).Day() == 1 },
		"FREQ=MONTHLY;BYDAY=1MO":       func(d time.Time) bool { return d.Weekday() == 1 && d.Day() <= 7 },
		"FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=1": func(d time.Time) bool {
			return d.Weekday() > 0 && d.Weekday() < 6 && (d.Day() == 1 || d.Day() <= 3 && d.Weekday() == 1)
		},
		"FREQ=YEARLY;BYMONTH=1;BYDAY=1MO": func(d time.Time) bool { return d.Month() == 1 && d.Weekday() == 1 && d.Day() <= 7 },
		"FREQ=YEARLY;BYDAY=-53MO,1MO":     func(d time.Time) bool { return d.Weekday() == 1 && d.YearDay() <= 7 },
		"FREQ=DAILY;BYMONTH=1,3;BYDAY=MO": func(d time.Time) bool { return (d.Month() == 1 || d.Month() == 3) && d.Weekday() == 1 },
		"FREQ=YEARLY;BYYEARDAY=1,100":     func(d time.Time) bool { return d.YearDay() == 1 || d.YearDay() == 100 },
	} {
		t.Run(text, func(t *testing.T) {
			r, err := parseRule(text)
			if err != nil {
				t.Fatal(err)
			}
			end := start.AddDate(3, 0, 0)
			got, err := r.wallTimes(start, end, place{time.UTC}.at)
			if err != nil {
				t.Fatal(err)
			}
			var want []time.Time
			for d := start; d.Before(end); d = d.AddDate(0, 0, 1) {
				if holds(d) {
					want = append(want, d)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestWallTimes: an event is at its wall time in its zone, except in a gap, where it is later by the length of
// the gap. The same zone as a VTIMEZONE gives the same times.
func TestWallTimes(t *testing.T) {
	own, err := decode(iCalendar(outlook), 0)
	if err != nil {
		t.Fatal(err)
	}
	written, err := newZones(time.UTC, own[0]).named("Somewhere Standard Time")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kathmandu", "Pacific/Apia", "UTC"} {
		loc := zoneOf(t, name)
		for wall := time.Date(2011, 12, 20, 0, 7, 0, 0, time.UTC); wall.Year() < 2027; wall = wall.Add(157 * time.Minute) {
			at := place{loc}.at(wall)
			shown := at.In(loc)
			if later := time.Date(shown.Year(), shown.Month(), shown.Day(), shown.Hour(), shown.Minute(), 0, 0, time.UTC).Sub(wall); later != 0 {
				gap := offset(at.Add(25*time.Hour).In(loc)) - offset(at.Add(-25*time.Hour).In(loc))
				if later != time.Duration(gap)*time.Second {
					t.Fatalf("%s: %s is shown as %s", name, wall, shown)
				}
			}
			if earlier := at.Add(-time.Hour).In(loc); earlier.Format("1504 2") == wall.Format("1504 2") {
				t.Fatalf("%s: %s comes twice, and this is not the first", name, wall)
			}
			if name == "Europe/Berlin" && !written.at(wall).Equal(at) {
				t.Fatalf("the VTIMEZONE has %s for %s, the database %s", written.at(wall), wall, at)
			}
		}
	}
}

// FuzzRead: foreign bytes never panic, and all results overlap the requested range.
func FuzzRead(f *testing.F) {
	f.Add(iCalendar(outlook, event("DTSTART;TZID=Somewhere Standard Time:20260329T023000", "DURATION:PT1H", "RRULE:FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO")))
	f.Add(iCalendar(event("DTSTART;TZID=Europe/Berlin:20261019T090000", "DURATION:P1DT1H", "RRULE:FREQ=MONTHLY;BYDAY=MO,-1TU;BYSETPOS=-1,2;WKST=SU;COUNT=9", "EXDATE:20261019T070000Z", "RDATE;VALUE=DATE:20261010"),
		event("RECURRENCE-ID;RANGE=THISANDFUTURE:20261020T070000Z", "DTSTART;VALUE=DATE:20261022", "DTEND;VALUE=DATE:20261023")))
	f.Add(iCalendar(event("DTSTART:20261019T090000", "DTEND:20261019T100000Z", "RRULE:FREQ=HOURLY;INTERVAL=7;BYMINUTE=1,2;UNTIL=20270101", "ATTENDEE;PARTSTAT=DECLINED:mailto:a@b.cd")))
	f.Add([]byte("BEGIN:VCALENDAR\nX;Y=\"a:b\"\nEND:VCALENDAR\n"))
	from, to := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 10, 31, 0, 0, 0, 0, time.UTC)
	berlin := zoneOf(f, "Europe/Berlin")
	f.Fuzz(func(t *testing.T, data []byte) {
		r := reader{Zone: berlin, Email: "a@b.cd"}
		found, err := r.Busy(t.Context(), data, from, to)
		if err != nil {
			return
		}
		for _, e := range found.Events {
			if !e.Start.Before(to) || !e.End.After(from) || !e.End.After(e.Start) {
				t.Errorf("%s to %s is not in the range", e.Start, e.End)
			}
		}
		if _, err := r.First(data, calendar.InvitationsNotSent); err != nil && len(found.Events) > 0 && !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrZone) {
			t.Error(err)
		}
	})
}
