package calendar_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	. "voicegw/internal/backends/calendar"
	"voicegw/internal/backends/calendar/calendartest"
)

var day = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)

func minutes(from, to int) Period {
	return Period{day.Add(time.Duration(from) * time.Minute), day.Add(time.Duration(to) * time.Minute)}
}

// TestMergeAndFree compares with a clock that is looked at every minute: a minute is
// busy if some period has it, and each minute of the range is busy or free, never
// both; free times are as long as they can be and at least as long as asked.
func TestMergeAndFree(t *testing.T) {
	const span = 200
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var periods []Period
		for range r.IntN(8) {
			from := r.IntN(span) - 20
			periods = append(periods, minutes(from, from+r.IntN(60)-5)) // some end before they begin
		}
		from := r.IntN(50)
		within, least := minutes(from, from+1+r.IntN(span-from)), time.Duration(r.IntN(40))*time.Minute
		given := slices.Clone(periods)
		busy := Merge(periods, within)
		free := Gaps(busy, within, least)
		if !slices.Equal(given, periods) {
			t.Fatalf("seed %d: the periods were changed", seed)
		}
		for m := -30; m < span+30; m++ {
			at := minutes(m, m+1)
			isBusy := at.Overlaps(within) && slices.ContainsFunc(periods, at.Overlaps)
			if got := slices.ContainsFunc(busy, at.Overlaps); got != isBusy {
				t.Fatalf("seed %d: minute %d is busy: %t, want %t", seed, m, got, isBusy)
			}
			if slices.ContainsFunc(free, at.Overlaps) && (isBusy || !at.Overlaps(within)) {
				t.Fatalf("seed %d: minute %d is free and busy, or outside", seed, m)
			}
		}
		for i, p := range busy {
			if p.Length() <= 0 || i > 0 && !busy[i-1].End.Before(p.Start) {
				t.Fatalf("seed %d: busy %v", seed, busy)
			}
		}
		// All that is neither is too short.
		rest := Merge(slices.Concat(busy, free), within)
		for _, gap := range Gaps(rest, within, 0) {
			if gap.Length() >= least {
				t.Fatalf("seed %d: %v is free, and left out", seed, gap)
			}
		}
		for _, f := range free {
			if f.Length() < least {
				t.Fatalf("seed %d: %v is too short", seed, f)
			}
		}
		again := Merge(busy, within)
		if diff := cmp.Diff(busy, again); diff != "" {
			t.Fatalf("seed %d: merged twice is another: %s", seed, diff)
		}
	}
}

func TestWords(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	beirut, err := time.LoadLocation("Asia/Beirut") // its days may begin at one
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		from, to string
		zone     *time.Location
		want     string
	}{
		{"2026-11-23T09:00:00Z", "2026-11-23T10:30:00Z", time.UTC, "Mon 23 Nov 2026 09:00-10:30"},
		{"2026-11-23T09:00:00Z", "2026-11-23T10:30:00Z", berlin, "Mon 23 Nov 2026 10:00-11:30"},
		{"2026-11-22T23:00:00Z", "2026-11-23T23:00:00Z", berlin, "Mon 23 Nov 2026"},
		{"2026-11-22T23:00:00Z", "2026-11-25T23:00:00Z", berlin, "Mon 23 Nov 2026 to Wed 25 Nov 2026"},
		{"2026-11-23T21:00:00Z", "2026-11-23T23:00:00Z", berlin, "Mon 23 Nov 2026 22:00-24:00"},
		{"2026-11-23T21:00:00Z", "2026-11-24T09:00:00Z", berlin, "Mon 23 Nov 2026 22:00 to Tue 24 Nov 2026 10:00"},
		{"2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z", berlin, "Sun 29 Mar 2026"},
		{"2026-03-28T22:00:00Z", "2026-03-29T21:00:00Z", beirut, "Sun 29 Mar 2026"},
	} {
		from, err1 := time.Parse(time.RFC3339, tc.from)
		to, err2 := time.Parse(time.RFC3339, tc.to)
		if got := Words(Period{from, to}, tc.zone); got != tc.want || err1 != nil || err2 != nil {
			t.Errorf("%s to %s: %q, want %q", tc.from, tc.to, got, tc.want)
		}
	}
	for d, want := range map[time.Duration]string{
		time.Minute: "1 minute", 45 * time.Minute: "45 minutes", time.Hour: "1 hour", 150 * time.Minute: "2 hours 30 minutes", 61 * time.Minute: "1 hour 1 minute",
	} {
		if got := LengthWords(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}

func event(from, to int) Event {
	p := minutes(from, to)
	return Event{Start: p.Start, End: p.End}
}

func TestSummary(t *testing.T) {
	for name, tc := range map[string]struct {
		events []Event
		want   string
	}{
		"nothing":    {nil, "Mon 23 Nov 2026 08:00-18:00 (UTC): nothing is booked, all of it is free."},
		"everything": {[]Event{event(0, 800), event(700, 1440)}, "Mon 23 Nov 2026 08:00-18:00 (UTC): all of it is booked."},
		"one": {[]Event{event(540, 600)}, "Mon 23 Nov 2026 08:00-18:00 (UTC): Mon 23 Nov 2026 09:00-10:00 is booked. " +
			"Free for 30 minutes or more: Mon 23 Nov 2026 08:00-09:00 and Mon 23 Nov 2026 10:00-18:00."},
		"nothing long enough": {[]Event{event(490, 1065)}, "Mon 23 Nov 2026 08:00-18:00 (UTC): Mon 23 Nov 2026 08:10-17:45 is booked, and no free time of 30 minutes or more."},
	} {
		f := calendartest.NewFake()
		f.Events[Primary] = tc.events
		p := minutes(480, 1080)
		got, err := NewScheduler(f, SchedulerOptions{}).Availability(t.Context(), Request{From: p.Start, To: p.End, Least: 30 * time.Minute})
		if err != nil || got.Summary != tc.want {
			t.Errorf("%s: %v\n got %s\nwant %s", name, err, got.Summary, tc.want)
		}
	}
	f := calendartest.NewFake()
	for i := range 10 {
		f.Events[Primary] = append(f.Events[Primary], event(480+60*i, 510+60*i))
	}
	p := minutes(480, 1080)
	got, err := NewScheduler(f, SchedulerOptions{}).Availability(t.Context(), Request{From: p.Start, To: p.End, Least: 30 * time.Minute})
	if err != nil || strings.Count(got.Summary, "6 more") != 2 {
		t.Errorf("%v: %s", err, got.Summary)
	}
}

// TestAllFail: when no calendar can be asked it is an error, and an invalid range
// asks nobody.
func TestAllFail(t *testing.T) {
	f := calendartest.NewFake()
	f.Errs[Team] = Errorf(Auth, nil, "No.")
	delete(f.Events, Personal)
	desk := NewScheduler(f, SchedulerOptions{})
	p := minutes(0, 60)
	if _, err := desk.Availability(t.Context(), Request{From: p.Start, To: p.End, Calendars: []Name{Personal, Team}}); KindOf(err) != NotFound {
		t.Errorf("got %v", err)
	}
	asked := len(f.Asked())
	for _, r := range []Request{{From: p.End, To: p.Start}, {From: p.Start, To: p.Start}, {From: p.Start, To: p.Start.Add(MaxRange + 1)}} {
		if _, err := desk.Availability(t.Context(), r); KindOf(err) != Invalid {
			t.Errorf("%+v: %v", r, err)
		}
	}
	if len(f.Asked()) != asked {
		t.Error("an invalid range was asked for")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := desk.Availability(ctx, Request{From: p.Start, To: p.End}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestKey(t *testing.T) {
	berlin := time.FixedZone("", 3600)
	start := day.Add(9 * time.Hour)
	key := Key("ada", "Design  Review", start, start.Add(time.Hour))
	if same := Key("ada", " design review ", start.In(berlin), start.Add(time.Hour).In(berlin)); same != key {
		t.Errorf("%s and %s", key, same)
	}
	for name, other := range map[string]string{
		"user": Key("eve", "Design Review", start, start.Add(time.Hour)), "title": Key("ada", "Design Review 2", start, start.Add(time.Hour)),
		"start": Key("ada", "Design Review", start.Add(time.Second), start.Add(time.Hour)), "end": Key("ada", "Design Review", start, start.Add(time.Minute)),
		"quotes": Key(`ada" "Design Review`, "", start, start.Add(time.Hour)),
	} {
		if other == key {
			t.Errorf("another %s has the same key", name)
		}
	}
	d := calendartest.Draft("x", 1)
	d.Key = key
	if err := d.Check(); err != nil {
		t.Error(err)
	}
}

func TestDraftCheck(t *testing.T) {
	for name, change := range map[string]func(*Draft){
		"no key":           func(d *Draft) { d.Key = "" },
		"a path":           func(d *Draft) { d.Key = "../../etc/passwd" },
		"blank":            func(d *Draft) { d.Title = " \n" },
		"unseen":           func(d *Draft) { d.Title = "\u3164\u2800\ufffd\u200b" },
		"turned":           func(d *Draft) { d.Title = "tea \u202e01:51" },
		"part of a second": func(d *Draft) { d.End = d.Start.Add(time.Second / 2) },
		"long title":       func(d *Draft) { d.Title = strings.Repeat("é", MaxTitle+1) },
		"long text":        func(d *Draft) { d.Description = strings.Repeat("é", MaxDescription+1) },
		"a crowd":          func(d *Draft) { d.Attendees = slices.Repeat([]string{"a@b.cd"}, MaxAttendees+1) },
		"no time":          func(d *Draft) { d.End = d.Start },
		"a long time":      func(d *Draft) { d.End = d.Start.Add(MaxLength + time.Second) },
		"long ago":         func(d *Draft) { d.Start, d.End = d.Start.AddDate(-100, 0, 0), d.End.AddDate(-100, 0, 0) },
		"not addressed":    func(d *Draft) { d.Attendees = []string{"bob"} },
	} {
		d := calendartest.Draft("x", 1)
		change(&d)
		if err := d.Check(); KindOf(err) != Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	for _, good := range []string{"a@b.cd", "first.last+tag@sub.example.co.uk", "o'neil@example.com", "x_1-2@ex-ample.org"} {
		if !IsAddress(good) {
			t.Errorf("%q is refused", good)
		}
	}
	for _, bad := range []string{"", "a", "a@b", "@b.cd", "a@", "a b@c.de", "a@b.cd ", "Ada <a@b.cd>", "a@b.cd\r\nX:y", "a..b@c.de", ".a@b.cd", "a@-b.cd", "a@b..cd", strings.Repeat("a", 65) + "@b.cd", `"a b"@c.de`, "a@b.cd,c@d.ef", "ä@b.cd"} {
		if IsAddress(bad) {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestErrors(t *testing.T) {
	inner := errors.New("refused")
	err := error(Errorf(Transient, &url.Error{Op: "Get", URL: "https://u:secret@x/?key=secret", Err: inner}, "Away."))
	if !errors.Is(err, inner) || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
	if KindOf(errors.New("x")) != Transient || KindOf(nil) != Transient {
		t.Error("what is not known may pass")
	}
}

// TestMeetingLink: the desk's link is the backend's to use, and another one for each
// event.
func TestMeetingLink(t *testing.T) {
	f := calendartest.NewFake()
	desk := NewScheduler(f, SchedulerOptions{MeetingURL: "https://m.example/{id}?x={id}"})
	d := calendartest.Draft("Tea", 1)
	if made, err := desk.Create(t.Context(), d); err != nil || made.Event.MeetingURL != "" {
		t.Errorf("nobody has asked for %q, %v", made.Event.MeetingURL, err)
	}
	d = calendartest.Draft("Cake", 1)
	d.Meeting = true
	if made, err := desk.Create(t.Context(), d); err != nil || made.Event.MeetingURL != "https://m.example/"+d.Key+"?x="+d.Key {
		t.Errorf("%q %v", made.Event.MeetingURL, err)
	}
}
