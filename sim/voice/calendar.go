package voice

import "strings"

var months = strings.Fields("january february march april may june july august september october november december")

// monthOf returns 1 to 12 for the name of a month or its first three letters, 0 otherwise.
func monthOf(s string) int {
	s = strings.ToLower(s)
	for i, m := range months {
		if s == m || len(s) == 3 && strings.HasPrefix(m, s) || s == "sept" && i == 8 {
			return i + 1
		}
	}
	return 0
}

// clockTime says "14:30", "9:05", "10:00:15" and "3pm", with or without am or pm
// behind it. It returns nil when s is not a time.
func clockTime(s string) []string {
	s = strings.ToLower(s)
	body, half := cutHalfDay(s)
	parts := strings.Split(body, ":")
	h, ok := atoi(parts[0])
	if !ok || h > 24 || len(parts) > 3 || len(parts) == 1 && half == "" {
		return nil
	}
	out := cardinal(h)
	for i, p := range parts[1:] {
		m, ok := atoi(p)
		if !ok || len(p) != 2 || m > 59 {
			return nil
		}
		switch {
		case i == 1:
			out = append(out, "and")
			out = append(append(out, cardinal(m)...), "seconds")
		case m == 0 && len(parts) == 2 && half == "" && h <= 12:
			out = append(out, "o'clock")
		case m == 0 && half == "":
			out = append(out, "hundred")
		case m == 0:
		case m < 10:
			out = append(out, "oh", small[m])
		default:
			out = append(out, cardinal(m)...)
		}
	}
	if half != "" {
		out = append(out, letterName(rune(half[0])), letterName('m'))
	}
	return out
}

// cutHalfDay takes am or pm off the end of a time.
func cutHalfDay(s string) (body, half string) {
	for _, suffix := range []string{"am", "pm", "a.m", "p.m"} {
		if b, ok := strings.CutSuffix(s, suffix); ok && b != "" && digit(rune(b[len(b)-1])) {
			return b, suffix
		}
	}
	return s, ""
}

// date says "2026-11-21" and, month first, "11/21/2026". It returns nil when s is no date.
func date(s string) []string {
	if p := strings.Split(s, "-"); len(p) == 3 && len(p[0]) == 4 {
		return dateWords(p[0], p[1], p[2])
	}
	if p := strings.Split(s, "/"); len(p) == 3 && len(p[2]) == 4 {
		if out := dateWords(p[2], p[0], p[1]); out != nil {
			return out
		}
		return dateWords(p[2], p[1], p[0])
	}
	return nil
}

func dateWords(y, m, d string) []string {
	yn, ok1 := atoi(y)
	mn, ok2 := atoi(m)
	dn, ok3 := atoi(d)
	if !ok1 || !ok2 || !ok3 || mn < 1 || mn > 12 || dn < 1 || dn > 31 || len(m) > 2 || len(d) > 2 {
		return nil
	}
	out := append([]string{months[mn-1]}, ordinal(dn)...)
	return append(append(out, ","), year(yn)...)
}

// timestamp says "2026-11-21T14:30" with or without seconds, fraction and zone.
func timestamp(s string) []string {
	d, t, ok := strings.Cut(s, "T")
	if !ok {
		return nil
	}
	out := date(d)
	if out == nil || len(t) < 5 {
		return nil
	}
	clock := clockTime(t[:5])
	if clock == nil {
		return nil
	}
	return append(append(out, ","), clock...)
}
