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

// maxCardinal is the largest number of digits spoken as one number.
const maxCardinal = 15

// number speaks digits as one whole number, or digit by digit if there are many or they begin
// with a zero, as in a telephone number.
func number(s string) []string {
	if len(s) <= maxCardinal && (s[0] != '0' || s == "0") {
		if n, err := strconv.ParseUint(s, 10, 64); err == nil {
			return cardinal(n)
		}
	}
	out := make([]string, len(s))
	for i, d := range []byte(s) {
		out[i] = small[d-'0']
	}
	return out
}
