package voice

import (
	"strconv"
	"strings"
)

var small = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve thirteen " +
	"fourteen fifteen sixteen seventeen eighteen nineteen")

var tens = strings.Fields("zero ten twenty thirty forty fifty sixty seventy eighty ninety")

var scales = []struct {
	value uint64
	name  string
}{
	{1e15, "quadrillion"}, {1e12, "trillion"}, {1e9, "billion"}, {1e6, "million"}, {1e3, "thousand"},
}

// cardinal returns n in words: 1205 is "one thousand two hundred five".
func cardinal(n uint64) []string {
	if n < 20 {
		return []string{small[n]}
	}
	var out []string
	for _, s := range scales {
		if n >= s.value {
			out = append(append(out, cardinal(n/s.value)...), s.name)
			n %= s.value
		}
	}
	if n >= 100 {
		out = append(out, small[n/100], "hundred")
		n %= 100
	}
	if n >= 20 {
		out = append(out, tens[n/10])
		n %= 10
	}
	if n > 0 {
		out = append(out, small[n])
	}
	return out
}

var ordinals = map[string]string{
	"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth",
	"nine": "ninth", "twelve": "twelfth",
}

// ordinal returns n as a rank: 21 is "twenty first".
func ordinal(n uint64) []string {
	w := cardinal(n)
	last := w[len(w)-1]
	switch o, ok := ordinals[last]; {
	case ok:
		w[len(w)-1] = o
	case strings.HasSuffix(last, "y"):
		w[len(w)-1] = strings.TrimSuffix(last, "y") + "ieth"
	default:
		w[len(w)-1] = last + "th"
	}
	return w
}

// year returns a year as it is said: 1984 is "nineteen eighty four", 2005 "two
// thousand five", 1900 "nineteen hundred", 1906 "nineteen oh six".
func year(n uint64) []string {
	if n < 1000 || n > 9999 || n%1000 < 10 {
		return cardinal(n)
	}
	out := cardinal(n / 100)
	switch r := n % 100; {
	case r == 0:
		return append(out, "hundred")
	case r < 10:
		return append(out, "oh", small[r])
	default:
		return append(out, cardinal(r)...)
	}
}

// digits names each digit of s; other characters are left out.
func digits(s string) []string {
	var out []string
	for _, r := range s {
		if digit(r) {
			out = append(out, small[r-'0'])
		}
	}
	return out
}

// maxCardinal is how many digits are said as one number; longer ones are
// read digit by digit.
const maxCardinal = 15

// number says a number as written with an optional sign, thousands separators and decimals:
// "-1,234.50". It returns nil when s is not one.
func number(s string) []string {
	var out []string
	switch {
	case strings.HasPrefix(s, "-"):
		out, s = append(out, "minus"), s[1:]
	case strings.HasPrefix(s, "+"):
		out, s = append(out, "plus"), s[1:]
	}
	whole, frac, hasFrac := strings.Cut(s, ".")
	whole, ok := ungroup(whole)
	if !ok || hasFrac && !allDigits(frac) || whole == "" && !hasFrac {
		return nil
	}
	switch {
	case whole == "":
	case len(whole) > maxCardinal || len(whole) > 1 && whole[0] == '0':
		out = append(out, digits(whole)...)
	default:
		n, err := strconv.ParseUint(whole, 10, 64)
		if err != nil {
			return nil
		}
		out = append(out, cardinal(n)...)
	}
	if hasFrac {
		out = append(append(out, "point"), digits(frac)...)
	}
	return out
}

// ungroup removes the commas of "12,345,678". It reports whether s is a whole number.
func ungroup(s string) (string, bool) {
	parts := strings.Split(s, ",")
	for i, p := range parts {
		if len(parts) == 1 && p == "" {
			return "", true
		}
		if !allDigits(p) || len(parts) > 1 && (i == 0 && len(p) > 3 || i > 0 && len(p) != 3) {
			return "", false
		}
	}
	return strings.Join(parts, ""), true
}

// small integers of dates and times.
func atoi(s string) (uint64, bool) {
	if !allDigits(s) || len(s) > 9 {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}
