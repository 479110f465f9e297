package voice

import "strings"

var currencies = []struct{ sign, one, many, cent string }{
	{"$", "dollar", "dollars", "cents"},
	{"€", "euro", "euros", "cents"},
	{"£", "pound", "pounds", "pence"},
	{"¥", "yen", "yen", "sen"},
}

// money says "$5", "€1,234.50" and "$3.2" (with no cents). scale is the next word when it
// is one such as "million", which then stands before the currency.
func money(s, scale string) []string {
	for _, c := range currencies {
		amount, ok := strings.CutPrefix(s, c.sign)
		if !ok {
			if amount, ok = strings.CutSuffix(s, c.sign); !ok {
				continue
			}
		}
		if last := len(amount) - 1; scale == "" && last > 0 {
			if name, ok := moneyScale[amount[last]]; ok {
				amount, scale = amount[:last], name
			}
		}
		whole, cents, hasCents := strings.Cut(amount, ".")
		if scale != "" || hasCents && len(cents) != 2 {
			if out := number(amount); out != nil {
				if scale != "" {
					out = append(out, scale)
				}
				return append(out, c.many)
			}
			return nil
		}
		out := number(whole)
		if out == nil || hasCents && !allDigits(cents) {
			return nil
		}
		if whole == "1" {
			out = append(out, c.one)
		} else {
			out = append(out, c.many)
		}
		if n, ok := atoi(cents); ok && n > 0 {
			out = append(append(append(out, "and"), cardinal(n)...), c.cent)
		}
		return out
	}
	return nil
}

var moneyScale = map[byte]string{'k': "thousand", 'K': "thousand", 'M': "million", 'm': "million", 'B': "billion", 'b': "billion"}

var bigScale = map[string]bool{"thousand": true, "million": true, "billion": true, "trillion": true}

// unit is a unit of measure, for one and for many of it.
type unit struct{ one, many string }

// units are known behind a number, with or without a space.
var units = map[string]unit{
	"%": {"percent", "percent"}, "°C": {"degree celsius", "degrees celsius"}, "°F": {"degree fahrenheit", "degrees fahrenheit"},
	"°": {"degree", "degrees"}, "km": {"kilometer", "kilometers"}, "m": {"meter", "meters"}, "cm": {"centimeter", "centimeters"},
	"mm": {"millimeter", "millimeters"}, "mi": {"mile", "miles"}, "ft": {"foot", "feet"}, "kg": {"kilogram", "kilograms"}, "g": {"gram", "grams"},
	"mg": {"milligram", "milligrams"}, "lb": {"pound", "pounds"}, "lbs": {"pound", "pounds"}, "oz": {"ounce", "ounces"},
	"l": {"liter", "liters"}, "ml": {"milliliter", "milliliters"}, "s": {"second", "seconds"}, "sec": {"second", "seconds"},
	"ms": {"millisecond", "milliseconds"}, "min": {"minute", "minutes"}, "h": {"hour", "hours"}, "hr": {"hour", "hours"}, "hrs": {"hour", "hours"},
	"Hz": {"hertz", "hertz"}, "kHz": {"kilohertz", "kilohertz"}, "MHz": {"megahertz", "megahertz"}, "GHz": {"gigahertz", "gigahertz"},
	"B": {"byte", "bytes"}, "KB": {"kilobyte", "kilobytes"}, "kB": {"kilobyte", "kilobytes"}, "MB": {"megabyte", "megabytes"},
	"GB": {"gigabyte", "gigabytes"}, "TB": {"terabyte", "terabytes"}, "kbps": {"kilobit per second", "kilobits per second"}, "Mbps": {"megabit per second", "megabits per second"},
	"dB": {"decibel", "decibels"}, "W": {"watt", "watts"}, "kW": {"kilowatt", "kilowatts"}, "V": {"volt", "volts"}, "x": {"times", "times"},
	"kWh": {"kilowatt hour", "kilowatt hours"}, "mph": {"mile per hour", "miles per hour"}, "km/h": {"kilometer per hour", "kilometers per hour"},
	"in": {"inch", "inches"},
}

// spacedUnits are also known when a space stands before them: those that are no
// words or names of their own.
func spacedUnit(s string) bool {
	switch s {
	case "in", "x", "m", "s", "h", "g", "l", "B", "V", "W", "min", "mi":
		return false
	}
	_, ok := units[s]
	return ok
}

// quantity says a number with a unit clinging to it: "5km", "12.5%", "20ms".
func quantity(s string) []string {
	i := strings.LastIndexFunc(s, digit) + 1
	if i == 0 || i == len(s) {
		return nil
	}
	u, ok := units[s[i:]]
	if !ok {
		return nil
	}
	out := number(s[:i])
	if out == nil {
		return nil
	}
	return append(out, u.say(s[:i])...)
}

// say returns the unit's name for an amount as written.
func (u unit) say(amount string) []string {
	if amount == "1" {
		return strings.Fields(u.one)
	}
	return strings.Fields(u.many)
}

// fraction says "1/2" and "3/4"; other "a/b" are "a over b".
func fraction(s string) []string {
	a, b, ok := strings.Cut(s, "/")
	if !ok {
		return nil
	}
	n, ok1 := atoi(a)
	d, ok2 := atoi(b)
	if !ok1 || !ok2 {
		return nil
	}
	var name string
	switch d {
	case 2:
		name = "half"
	case 4:
		name = "quarter"
	case 3, 5, 8:
		name = ordinal(d)[0]
	}
	if name == "" || n == 0 || n >= d {
		return append(append(cardinal(n), "over"), cardinal(d)...)
	}
	if n > 1 {
		name += "s"
	}
	return append(cardinal(n), name)
}

// span says "5-10" as "five to ten"; telephone numbers and others with several
// hyphens are read digit by digit in groups.
func span(s string) []string {
	parts := strings.Split(strings.TrimPrefix(s, "+"), "-")
	if len(parts) < 2 {
		return nil
	}
	for _, p := range parts {
		if len(parts) == 2 && number(p) == nil || len(parts) > 2 && !allDigits(p) || p == "" || p[0] == '+' {
			return nil
		}
	}
	if len(parts) == 2 && !(len(parts[0]) == 3 && len(parts[1]) == 4) {
		out := spokenInteger(parts[0])
		return append(append(out, "to"), spokenInteger(parts[1])...)
	}
	var out []string
	for i, p := range parts {
		if i > 0 {
			out = append(out, ",")
		}
		out = append(out, digits(p)...)
	}
	return out
}

// spokenInteger says a number, as a year where it looks like one.
func spokenInteger(s string) []string {
	if n, ok := atoi(s); ok && len(s) == 4 && (n >= 1100 && n < 2000 || n >= 2010 && n < 2100) {
		return year(n)
	}
	return number(s)
}
