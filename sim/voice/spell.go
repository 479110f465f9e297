package voice

import "strings"

// letterNames are the names of the letters, as words of the lexicon.
const letterNames = "l:a l:b l:c l:d l:e l:f l:g l:h l:i l:j l:k l:l l:m l:n l:o l:p l:q l:r l:s l:t l:u l:v l:w l:x l:y l:z"

// letterName returns the lexicon's word for the name of a plain letter.
func letterName(r rune) string {
	r |= 0x20
	i := int(r-'a') * 4
	return letterNames[i : i+3]
}

// spell names each letter and digit of s.
func spell(s string) []string {
	var out []string
	for _, r := range s {
		switch {
		case letter(r):
			out = append(out, letterName(r))
		case digit(r):
			out = append(out, small[r-'0'])
		}
	}
	return out
}

// initialism reports whether an all-capital word is said letter by letter: it is short
// or has no vowel, and is no word that stands in capitals for emphasis.
func initialism(s string) bool {
	if len(s) < 2 || s != strings.ToUpper(s) {
		return false
	}
	low := strings.ToLower(s)
	if spelledWords[low] {
		return true
	}
	if _, known := lexicon()[low]; known {
		return false
	}
	return len(s) <= 3 || !strings.ContainsAny(low, "aeiouy")
}

// spelledWords are in the lexicon in lower case but are names of letters in capitals.
var spelledWords = map[string]bool{"us": true, "id": true, "ai": true, "pm": true, "am": true, "pi": true, "it": true, "ms": true, "uuid": true, "ieee": true, "grpc": true}

// abbreviations are written short and said in full. Those that end in a period
// are listed without it.
var abbreviations = map[string]string{
	"mr": "mister", "mrs": "missus", "ms": "miss", "dr": "doctor", "prof": "professor", "st": "saint",
	"jr": "junior", "sr": "senior", "vs": "versus", "etc": "et cetera", "approx": "approximately",
	"dept": "department", "est": "estimated", "fig": "figure", "no": "number", "inc": "incorporated",
	"ltd": "limited", "corp": "corporation", "co": "company", "ave": "avenue", "blvd": "boulevard", "rd": "road",
	"mon": "monday", "tue": "tuesday", "tues": "tuesday", "wed": "wednesday", "thu": "thursday", "thurs": "thursday",
	"fri": "friday", "sat": "saturday", "sun": "sunday", "min": "minutes", "max": "maximum", "tel": "telephone",
	"ext": "extension", "apt": "apartment", "e.g": "for example", "i.e": "that is", "a.m": "l:a l:m", "p.m": "l:p l:m",
	"u.s": "l:u l:s", "u.k": "l:u l:k", "ph.d": "l:p l:h l:d", "w/o": "without", "w/": "with", "&": "and",
	"jan": "january", "feb": "february", "mar": "march", "apr": "april", "jun": "june", "jul": "july",
	"aug": "august", "sep": "september", "sept": "september", "oct": "october", "nov": "november", "dec": "december",
}

// needsPeriod are the abbreviations that are words of their own, or names, without a period.
var needsPeriod = map[string]bool{
	"no": true, "min": true, "max": true, "mon": true, "wed": true, "sat": true, "sun": true, "fig": true, "est": true,
	"co": true, "inc": true, "mar": true, "jan": true, "jun": true, "ms": true, "ext": true, "st": true, "tue": true, "apt": true, "dec": true,
	"corp": true, "thu": true, "fri": true, "rd": true, "ave": true, "tel": true, "oct": true, "nov": true, "sep": true, "apr": true, "feb": true, "jul": true, "aug": true,
}

// symbols are the names of signs that stand alone or between words.
var symbols = map[string]string{
	"&": "and", "+": "plus", "=": "equals", "@": "at", "%": "percent", "#": "number", "<": "less than", ">": "greater than",
	"~": "about", "°": "degrees", "$": "dollar", "€": "euro", "£": "pound", "¥": "yen", "->": "to", "=>": "to",
	"/": "slash", "<=": "at most", ">=": "at least", "==": "equals", "!=": "is not",
}
