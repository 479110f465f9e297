package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The parts of a request for an event: "Book lunch with Ada on Friday at 12:30 for an hour".
var (
	eventVerb = regexp.MustCompile(`(?i)^.*?\b(?:book|schedule|create|plan|set up|arrange|add)\b\s*(?:me\s+)?(?:an?\s+|the\s+)?`)
	eventDay  = regexp.MustCompile(`(?i)\b(?:on\s+|for\s+)?(?:(?:the\s+)?(day after tomorrow)|(today|tonight)|(tomorrow)|` +
		`(next\s+)?(monday|tuesday|wednesday|thursday|friday|saturday|sunday)|(\d{4}-\d{2}-\d{2}))\b`)
	eventTime = regexp.MustCompile(`(?i)\b(?:at|from)\s+` + clock + `(?:\s*(?:to|until|till|-)\s*` + clock + `)?`)
	eventLong = regexp.MustCompile(`(?i)\bfor\s+(?:(half an hour)|(an hour and a half)|(an|one|two|three|\d+)\s+hours?|(\d+|` +
		`thirty|fifteen|forty-five)\s+min(?:ute)?s?)\b`)
	eventMail = regexp.MustCompile(`(?i)\bwith\s+([\w.+-]+@[\w.-]+\w)`)
)

const clock = `(noon|midday|(?:\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)(?::(\d{2}))?(?:\s*(am|` +
	`pm|a\.m\.|p\.m\.)|\s+o'?clock)?)`

const noTime = "Ask for the time of the event"

// event returns a request for an event in full, "Book lunch on 2026-11-30 from 12:30 to 13:30 with ada@example.com":
// without a day today, without an end one hour. now is in the user's time zone. Without a time it returns noTime.
func event(text string, now time.Time) string {
	at := eventTime.FindStringSubmatch(text)
	if at == nil {
		return noTime
	}
	start, ok := clockOf(at[1], at[2], at[3])
	if !ok {
		return noTime
	}
	end := start + time.Hour
	if long := eventLong.FindStringSubmatch(text); long != nil {
		end = start + durationOf(long)
	}
	if at[4] != "" {
		if end, ok = clockOf(at[4], at[5], at[6]); !ok {
			return noTime
		}
		if end <= start {
			end += 12 * time.Hour // "from 11 to 1"
		}
	}
	end = min(end, 24*time.Hour-time.Minute)
	if end <= start {
		return noTime
	}
	title := eventVerb.ReplaceAllString(text, "")
	for _, part := range []*regexp.Regexp{eventTime, eventDay, eventLong, eventMail} {
		title = part.ReplaceAllString(title, "")
	}
	title = strings.Trim(strings.Join(strings.Fields(title), " "), " .,!?")
	if title == "" {
		title = "event"
	}
	with := ""
	if mail := eventMail.FindStringSubmatch(text); mail != nil {
		with = " with " + mail[1]
	}
	return fmt.Sprintf("Book %s on %s from %s to %s%s", title, dayOf(text, now).Format(time.DateOnly), hhmm(start), hhmm(end), with)
}

func dayOf(text string, now time.Time) time.Time {
	day := eventDay.FindStringSubmatch(text)
	switch {
	case day == nil || day[2] != "":
		return now
	case day[1] != "":
		return now.AddDate(0, 0, 2)
	case day[3] != "":
		return now.AddDate(0, 0, 1)
	case day[6] != "":
		if date, err := time.Parse(time.DateOnly, day[6]); err == nil {
			return date
		}
		return now
	}
	days := 1 // the next such day after today
	for now.AddDate(0, 0, days).Weekday().String() != strings.ToUpper(day[5][:1])+strings.ToLower(day[5][1:]) {
		days++
	}
	return now.AddDate(0, 0, days)
}

// clockOf parses a time of day. An hour from 1 to 6 without am or pm is in the afternoon.
func clockOf(hour, minute, half string) (time.Duration, bool) {
	hour = strings.ToLower(hour)
	if hour == "noon" || hour == "midday" {
		return 12 * time.Hour, true
	}
	word := strings.FieldsFunc(hour, func(r rune) bool { return r == ':' || r == ' ' })[0]
	word = strings.TrimRight(strings.TrimSuffix(strings.TrimSuffix(word, "am"), "pm"), ".")
	h, err := strconv.Atoi(word)
	if err != nil {
		h = slices.Index(units, word)
	}
	m, _ := strconv.Atoi(minute) // empty means 0
	half = strings.ReplaceAll(strings.ToLower(half), ".", "")
	switch {
	case half != "" && (h < 1 || h > 12):
		return 0, false
	case half == "pm" && h < 12, half == "" && h >= 1 && h <= 6 && len(word) != 2:
		h += 12
	case half == "am" && h == 12:
		h = 0
	}
	return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute, h >= 0 && h < 24 && m < 60
}

func durationOf(long []string) time.Duration {
	number := func(s string) time.Duration {
		if n, ok := map[string]time.Duration{"an": 1, "fifteen": 15, "thirty": 30, "forty-five": 45}[strings.ToLower(s)]; ok {
			return n
		}
		if i := slices.Index(units, strings.ToLower(s)); i > 0 {
			return time.Duration(i)
		}
		n, _ := strconv.Atoi(s) // only digits
		return time.Duration(min(n, 24*60))
	}
	switch {
	case long[1] != "":
		return 30 * time.Minute
	case long[2] != "":
		return 90 * time.Minute
	case long[3] != "":
		return number(long[3]) * time.Hour
	}
	return number(long[4]) * time.Minute
}

func hhmm(d time.Duration) string {
	return fmt.Sprintf("%02d:%02d", int(d.Hours()), int(d.Minutes())%60)
}
