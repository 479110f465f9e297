package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// AppendCanonical appends the canonical form of a value from Decode, which is equal for equal values: no white space,
// sorted keys, minimal escapes, and the shortest exact numbers (1.0 and 1e0 are 1, -0 is 0).
//
// It follows RFC 8785 with two exceptions: numbers are exact instead of rounded to the nearest double
// (10000000000000000001 keeps its value), and keys are sorted by UTF-8 bytes instead of UTF-16 units, which differs
// only above U+D7FF.
func AppendCanonical(dst []byte, v any) []byte {
	switch v := v.(type) {
	case bool:
		return strconv.AppendBool(dst, v)
	case json.Number:
		return AppendNumber(dst, string(v))
	case string:
		return appendString(dst, v)
	case []any:
		dst = append(dst, '[')
		for i, item := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendCanonical(dst, item)
		}
		return append(dst, ']')
	case map[string]any:
		dst = append(dst, '{')
		for i, key := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, key), ':')
			dst = AppendCanonical(dst, v[key])
		}
		return append(dst, '}')
	}
	return append(dst, "null"...)
}

// jsonEscapes are those of RFC 8785 section 3.2.2.2.
var jsonEscapes = func() *strings.Replacer {
	pairs := []string{`"`, `\"`, `\`, `\\`, "\b", `\b`, "\f", `\f`, "\n", `\n`, "\r", `\r`, "\t", `\t`}
	for c := range ' ' {
		if !slices.Contains(pairs, string(c)) {
			pairs = append(pairs, string(c), fmt.Sprintf(`\u%04x`, c))
		}
	}
	return strings.NewReplacer(pairs...)
}()

func appendString(dst []byte, s string) []byte {
	return append(append(append(dst, '"'), jsonEscapes.Replace(s)...), '"')
}

// AppendNumber appends a JSON number that checkNumber accepts, in the layout of ECMAScript's
// Number.prototype.toString (RFC 8785 section 3.2.2.3) but with all digits: a plain integer below 10^21, a plain
// fraction from 10^-6, otherwise an exponent.
func AppendNumber(dst []byte, s string) []byte {
	negative, digits, point := decimal(s)
	if digits == "" {
		return append(dst, '0')
	}
	if negative {
		dst = append(dst, '-')
	}
	switch n := len(digits); {
	case point >= n && point <= 21:
		dst = append(append(dst, digits...), strings.Repeat("0", point-n)...)
	case point > 0 && point <= 21:
		dst = append(append(append(dst, digits[:point]...), '.'), digits[point:]...)
	case point > -6 && point <= 0:
		dst = append(append(append(dst, "0."...), strings.Repeat("0", -point)...), digits...)
	default:
		dst = append(dst, digits[0])
		if n > 1 {
			dst = append(append(dst, '.'), digits[1:]...)
		}
		dst = append(dst, 'e')
		if point > 0 {
			dst = append(dst, '+')
		}
		dst = strconv.AppendInt(dst, int64(point-1), 10)
	}
	return dst
}

// decimal parses a JSON number with the value 0.digits × 10^point. digits starts and ends with a nonzero digit, and
// is empty for 0. An exponent beyond int counts as 0; checkNumber rejects such a number.
func decimal(s string) (negative bool, digits string, point int) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	if exponent != "" {
		point, _ = strconv.Atoi(exponent)
	}
	mantissa, negative = strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits = whole + fraction
	trimmed := strings.TrimLeft(digits, "0")
	point += len(whole) - (len(digits) - len(trimmed))
	return negative, strings.TrimRight(trimmed, "0"), point
}

// Clone copies a decoded value, so that callers don't change shared defaults.
func Clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, item := range v {
			m[key] = Clone(item)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = Clone(item)
		}
		return list
	}
	return v
}

// Marshal is json.Marshal without HTML escapes.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// Above reports whether a number exceeds limit; false if it isn't a number.
func Above(number json.Number, limit int) bool {
	r, ok := new(big.Rat).SetString(string(number))
	return ok && r.Cmp(new(big.Rat).SetInt64(int64(limit))) > 0
}
