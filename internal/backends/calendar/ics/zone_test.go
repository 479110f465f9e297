package ics

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ownZone is a VTIMEZONE named Own with these lines in it.
func ownZone(lines ...string) string {
	return "BEGIN:VTIMEZONE\nTZID:Own\n" + strings.Join(lines, "\n") + "\nEND:VTIMEZONE\n"
}

func standard(lines ...string) string {
	return "BEGIN:STANDARD\n" + strings.Join(lines, "\n") + "\nEND:STANDARD"
}

// TestDefinedZones: zones defined only by a VTIMEZONE, worked out by hand.
func TestDefinedZones(t *testing.T) {
	nine := "DTSTART;TZID=Own:%sT090000"
	for name, tc := range map[string]struct {
		zone, day, want string
	}{
		"seconds of an old offset": {standard("DTSTART:19000101T000000", "TZOFFSETFROM:+005328", "TZOFFSETTO:+005328"),
			"20261123", "2026-11-23T08:06Z 2026-11-23T09:06Z"},
		"west of Greenwich": {standard("DTSTART:19700101T000000", "TZOFFSETFROM:-0330", "TZOFFSETTO:-0330"),
			"20261123", "2026-11-23T12:30Z 2026-11-23T13:30Z"},
		"before its first change the offset before it counts": {standard("DTSTART:20270101T000000", "TZOFFSETFROM:+0200", "TZOFFSETTO:+0500"),
			"20261123", "2026-11-23T07:00Z 2026-11-23T08:00Z"},
		"changes by dates: before the second": {standard("DTSTART:20200101T000000", "TZOFFSETFROM:+0100", "TZOFFSETTO:+0100") + "\n" +
			standard("DTSTART:20261120T000000", "RDATE:20261130T000000", "TZOFFSETFROM:+0100", "TZOFFSETTO:+0300"),
			"20261119", "2026-11-19T08:00Z 2026-11-19T09:00Z"},
		"changes by dates: after it": {standard("DTSTART:20200101T000000", "TZOFFSETFROM:+0100", "TZOFFSETTO:+0100") + "\n" +
			standard("DTSTART:20261201T000000", "RDATE:20261122T000000", "TZOFFSETFROM:+0100", "TZOFFSETTO:+0300"),
			"20261123", "2026-11-23T06:00Z 2026-11-23T07:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			data := iCalendar(ownZone(tc.zone), event(strings.Replace(nine, "%s", tc.day, 1), "DURATION:PT1H"))
			if diff := cmp.Diff([]string{tc.want}, times(t, reader{}, data, "2026-11-01T00:00Z", "2026-12-01T00:00Z")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestUndefinedZones: an event in an undefined zone is reported as unread because of its zone.
func TestUndefinedZones(t *testing.T) {
	const start, from, to = "DTSTART:19700101T000000", "TZOFFSETFROM:+0100", "TZOFFSETTO:+0100"
	for name, zone := range map[string]string{
		"no observance":           "X-NOTHING:here",
		"no start":                standard(from, to),
		"a start that is no time": standard("DTSTART:soon", from, to),
		"no offset":               standard(start, from),
		"an offset without sign":  standard(start, from, "TZOFFSETTO:0100"),
		"an offset of three":      standard(start, from, "TZOFFSETTO:+100"),
		"an offset of 25 hours":   standard(start, from, "TZOFFSETTO:+2500"),
		"an offset of 60 minutes": standard(start, from, "TZOFFSETTO:+0160"),
		"an offset of letters":    standard(start, from, "TZOFFSETTO:+01xx"),
		"a daily change":          standard(start, from, to, "RRULE:FREQ=DAILY"),
		"an invalid rule":         standard(start, from, to, "RRULE:FREQ=OFTEN"),
		"an invalid date":         standard(start, from, to, "RDATE:never"),
		"too many observances":    strings.TrimSuffix(strings.Repeat(standard(start, from, to)+"\n", maxObservances+1), "\n"),
	} {
		t.Run(name, func(t *testing.T) {
			found := busy(t, reader{}, iCalendar(ownZone(zone), event("DTSTART;TZID=Own:20261123T090000", "DURATION:PT1H")), "2026-11-01T00:00Z", "2026-12-01T00:00Z")
			if len(found.Events) != 0 || len(found.Unread) != 1 || !errors.Is(found.Unread[0].Err, ErrZone) {
				t.Errorf("%d events, unread %+v", len(found.Events), found.Unread)
			}
		})
	}
}
