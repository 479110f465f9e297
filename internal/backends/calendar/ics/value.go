package ics

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/emersion/go-ical"

	"voicegw/internal/backends/calendar"
)

func value(c *ical.Component, name string) string {
	if p := c.Props.Get(name); p != nil {
		return strings.TrimSpace(p.Value)
	}
	return ""
}

// text returns at most limit characters of a property, without escapes and control characters.
func text(c *ical.Component, name string, limit int) string {
	return plain(unescape(value(c, name)), limit)
}

// unescape loses no text at a stray backslash or a bare comma, unlike the decoder's own function.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n', 'N':
			b.WriteByte('\n')
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

func plain(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return calendar.Cut(strings.TrimSpace(s), limit)
}

type stamp struct {
	wall time.Time
	date bool // a day without a time
	utc  bool // written with Z
}

// minYear is the first accepted year: Outlook's zones begin in 1601.
const minYear = 1600

const (
	dateForm = "20060102"
	timeForm = "20060102T150405"
)

// parseWall parses a date or date-time (RFC 5545 sections 3.3.4 and 3.3.5).
func parseWall(s string) (stamp, error) {
	s = strings.TrimSpace(s)
	local, utc := strings.CutSuffix(s, "Z")
	if t, err := time.Parse(timeForm, local); err == nil && len(local) == len(timeForm) && t.Year() >= minYear {
		return stamp{wall: t, utc: utc}, nil
	}
	if t, err := time.Parse(dateForm, s); err == nil && len(s) == len(dateForm) && t.Year() >= minYear {
		return stamp{wall: t, date: true}, nil
	}
	return stamp{}, fmt.Errorf("%w: %.40q is not a time", ErrMalformed, s)
}

// moment is a stamp with its zone.
type moment struct {
	stamp
	zone zone
}

func (m moment) time() time.Time { return m.zone.at(m.wall) }

func (z *zones) moment(p *ical.Prop, s string) (moment, error) {
	at, err := parseWall(s)
	if err != nil {
		return moment{}, err
	}
	m := moment{stamp: at, zone: z.floating}
	switch id := p.Params.Get(ical.ParamTimezoneID); {
	case at.utc:
		m.zone = place{time.UTC}
	case !at.date && id != "":
		m.zone, err = z.named(id)
	}
	return m, err
}

func (z *zones) moments(c *ical.Component, name string) ([]moment, error) {
	var all []moment
	for i := range c.Props[name] {
		p := &c.Props[name][i]
		for s := range strings.SplitSeq(p.Value, ",") {
			m, err := z.moment(p, s)
			if err != nil {
				return nil, err
			}
			all = append(all, m)
		}
	}
	return all, nil
}

// length is a duration of calendar days and time.
type length struct {
	days int
	time time.Duration
}

func (l length) after(z zone, wall time.Time) time.Time {
	if l.days == 0 {
		return z.at(wall).Add(l.time)
	}
	return z.at(wall.AddDate(0, 0, l.days)).Add(l.time)
}

const maxDays = 4000

// lengthForm is a DURATION: weeks, days, hours, minutes, seconds.
var lengthForm = regexp.MustCompile(`^\+?P(?:(\d{1,9})W)?(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})S)?)?$`)

// parseLength parses a DURATION (RFC 5545 section 3.3.6). Its weeks and days are calendar days.
func parseLength(s string) (length, error) {
	parts := lengthForm.FindStringSubmatch(strings.ToUpper(s))
	if parts == nil || strings.Join(parts[1:], "") == "" {
		return length{}, fmt.Errorf("%w: %.40q is not a duration", ErrMalformed, s)
	}
	var n [6]int
	for i := 1; i < len(parts); i++ {
		n[i], _ = strconv.Atoi(parts[i]) // empty, or at most nine digits
	}
	l := length{days: 7*n[1] + n[2]}
	seconds := 3600*n[3] + 60*n[4] + n[5]
	if l.days > maxDays || seconds > maxDays*86400 {
		return length{}, fmt.Errorf("%w: a duration of many years", ErrMalformed)
	}
	l.time = time.Duration(seconds) * time.Second
	return l, nil
}
