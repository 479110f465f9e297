package cost

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// ParseDollars parses an exact amount of dollars, such as 5, 0.75 or 0.000001. It rejects signs, exponents, more than
// six decimals, and amounts beyond Micros.
func ParseDollars(text string) (Micros, bool) {
	units, decimals, point := strings.Cut(text, ".")
	if units == "" || point && decimals == "" || len(decimals) > 6 {
		return 0, false
	}
	var n int64
	for _, c := range units + decimals + strings.Repeat("0", 6-len(decimals)) {
		if c < '0' || c > '9' || n > (math.MaxInt64-9)/10 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return Micros(n), true
}

// write writes a row for the table's checksum.
func write(w io.Writer, name string, r row) {
	_, _ = fmt.Fprintln(w, name, r.from, r.prices) // a hash never fails
}
