package contacts

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/nyaruka/phonenumbers"
)

const minDigits = 7 // the minimum length of a number. Shorter ones work only within a town.

// maxE164 is the maximum length of a number with its plus (ITU-T E.164, section 6.1). Some plans have longer ones,
// which do not work from abroad.
const maxE164 = 16

// separators are allowed between the digits of a number, at most three in a row.
const separators = " -./()\u00A0\u2009\u202F\u2010\u2011\u2012\u2013\u2014\u2212\u00B7\u2060"

// candidate is a run of digits and separators, from a plus, a bracket or a digit to its last digit.
var candidate = regexp.MustCompile(strings.ReplaceAll(`(?:[+＋(][SEP+＋]{0,2})?\p{Nd}(?:[SEP]{0,3}\p{Nd})*`,
	"SEP", strings.ReplaceAll(separators, "-", `\-`)))

// phones finds the numbers. needsRegion means that there may be more with a region.
func phones(p *page, region string) (hits []hit[Phone], needsRegion bool) {
	for at := 0; ; {
		m := candidate.FindIndex(p.left[at:])
		if m == nil {
			return hits, needsRegion
		}
		start, end := at+m[0], at+m[1]
		at = end
		if countDigits(p.text[start:end]) < minDigits {
			continue
		}
		if !strings.ContainsRune(p.text[start:end], ')') {
			start += len(p.text[start:end]) - len(strings.TrimLeft(p.text[start:end], "( ")) // it closes later, or never
		}
		found, lacking := readPhones(p, start, end, region, between)
		hits = append(hits, found...)
		needsRegion = needsRegion || lacking
		if n := len(found); n > 0 {
			at = max(at, found[n-1].end)
		}
	}
}

// between are the marks that separate two numbers, the strongest first.
var between = []*regexp.Regexp{
	regexp.MustCompile(`[ \t]/[ \t]`),
	regexp.MustCompile(`[.)]?[ ]{2,}`),
	regexp.MustCompile(`[ ][-\x{2010}-\x{2014}][ ]`),
	regexp.MustCompile(`\.[ ]`),
	regexp.MustCompile(`/`),
	regexp.MustCompile(`[ ]\(`),
}

// readPhones reads a part of the text as one number, or as several with one of marks between them.
func readPhones(p *page, start, end int, region string, marks []*regexp.Regexp) (hits []hit[Phone], needsRegion bool) {
	if !isPhonePlace(p, start, end) {
		return nil, false
	}
	if hits := readAlternates(p, start, end, region); hits != nil {
		return hits, false
	}
	h, ok, lacking := readPhone(p, start, end, region)
	if ok {
		return []hit[Phone]{h}, false
	}
	for i, mark := range marks {
		found := mark.FindAllStringIndex(p.text[start:end], -1)
		if found == nil {
			continue
		}
		at := start
		for _, m := range append(found, []int{end - start, end - start}) {
			part, lacks := readPart(p, at, start+m[0], region, marks[i+1:])
			hits, lacking = append(hits, part...), lacking || lacks
			at = start + m[1]
		}
		break
	}
	return hits, lacking
}

// alternate are the last digits of another number of the same subscriber: 555-2671/2672, 901820-0/-1.
var alternate = regexp.MustCompile(`[ ]?/[ ]?-?([0-9]{1,4})$`)

const maxAlternates = 8

// readAlternates reads a number and its alternates, which have as many digits. It returns nil without alternates.
func readAlternates(p *page, start, end int, region string) []hit[Phone] {
	var tails [][2]int // of the digits, from the last backwards
	head := end
	for len(tails) < maxAlternates {
		m := alternate.FindStringSubmatchIndex(p.text[start:head])
		if m == nil {
			break
		}
		tails = append(tails, [2]int{start + m[2], start + m[3]})
		head = start + m[0]
	}
	if len(tails) == 0 || countDigits(p.text[start:head]) < minDigits {
		return nil
	}
	first := p.text[start:head]
	main, ok, _ := readPhone(p, start, head, region)
	if !ok {
		return nil
	}
	hits := []hit[Phone]{main}
	for i := len(tails) - 1; i >= 0; i-- {
		digits := p.text[tails[i][0]:tails[i][1]]
		at := len(first) - len(digits)
		if at < 0 || countDigits(first[at:]) != len(digits) {
			return nil
		}
		number := parseNumber(first[:at]+digits, region)
		if number == nil {
			return nil
		}
		ext, more := extension(p, tails[i][1])
		hits = append(hits, hit[Phone]{tails[i][0], tails[i][1] + more, phoneOf(number, ext)})
	}
	return hits
}

func readPart(p *page, start, end int, region string, marks []*regexp.Regexp) ([]hit[Phone], bool) {
	part := p.text[start:end]
	if countDigits(part) < minDigits {
		return nil, false
	}
	start += len(part) - len(strings.TrimLeft(part, separators))
	end -= len(part) - len(strings.TrimRight(part, separators))
	if start > 0 && p.text[start-1] == '(' && strings.ContainsRune(p.text[start:end], ')') {
		start--
	}
	return readPhones(p, start, end, region, marks)
}

func countDigits(s string) int {
	n := 0
	for _, r := range s {
		if unicode.IsDigit(r) {
			n++
		}
	}
	return n
}

// readPhone reads a part of the text as one number. lacking means that it may be a number with a region.
func readPhone(p *page, start, end int, region string) (h hit[Phone], ok, lacking bool) {
	raw := p.text[start:end]
	number := parseNumber(raw, region)
	if number == nil {
		digits := phonenumbers.NormalizeDigitsOnly(raw)
		lacking = region == "" && (cueOf(p, start) == cuePhone || strings.HasPrefix(digits, "0") && len(digits) >= 9 && len(digits) <= 12)
		return h, false, lacking
	}
	ext, more := extension(p, end)
	return hit[Phone]{start, end + more, phoneOf(number, ext)}, true, false
}

// parseNumber returns a valid number of its country's plan, or nil.
func parseNumber(raw, region string) *phonenumbers.PhoneNumber {
	raw = strings.ReplaceAll(raw, "＋", "+")
	if region == "" && !strings.Contains(raw, "+") && !strings.HasPrefix(raw, "00") {
		return nil
	}
	number := valid(raw, region)
	// People write 00 as the international prefix even where it is another one.
	if rest, ok := strings.CutPrefix(raw, "00"); ok && number == nil {
		number = valid("+"+rest, region)
	}
	return number
}

func valid(raw, region string) *phonenumbers.PhoneNumber {
	number, err := phonenumbers.ParseAndKeepRawInput(raw, region)
	// In countries where numbers are written with a prefix (0 in Germany), digits without one count something else.
	if err != nil || !phonenumbers.IsValidNumber(number) || len(phonenumbers.Format(number, phonenumbers.E164)) > maxE164 ||
		!phonenumbers.IsNationalPrefixPresentIfRequired(number) {
		return nil
	}
	return number
}

var extensionForm = regexp.MustCompile(`(?i)^(?:[ \t]*[,;(]?[ \t]*(?:extension|ext|extn|durchwahl|dw|poste|anexo|` +
	`interno)\b[.:]?[ \t]*|;ext=|[ \t]?x[.:]?[ \t]?)([0-9]{1,7})\)?`)

// extension reads the extension after a number that ends at an offset. length is in bytes.
func extension(p *page, at int) (ext string, length int) {
	m := extensionForm.FindStringSubmatch(p.text[at:min(len(p.text), at+40)])
	if m == nil || inWord(p.after(at+len(m[0]))) {
		return "", 0
	}
	return m[1], len(m[0])
}

// types are the names of the types of numbers; every other type is "other". Some plans, such as that of the USA, do not
// distinguish fixed lines from mobile ones.
var types = map[phonenumbers.PhoneNumberType]string{
	phonenumbers.FIXED_LINE: "fixed_line", phonenumbers.MOBILE: "mobile", phonenumbers.FIXED_LINE_OR_MOBILE: "fixed_line_or_mobile",
	phonenumbers.TOLL_FREE: "toll_free", phonenumbers.PREMIUM_RATE: "premium_rate", phonenumbers.SHARED_COST: "shared_cost",
	phonenumbers.VOIP: "voip", phonenumbers.PERSONAL_NUMBER: "personal_number", phonenumbers.PAGER: "pager",
	phonenumbers.UAN: "uan", phonenumbers.VOICEMAIL: "voicemail",
}

func phoneOf(number *phonenumbers.PhoneNumber, extension string) Phone {
	return Phone{
		E164: phonenumbers.Format(number, phonenumbers.E164), Region: phonenumbers.GetRegionCodeForNumber(number),
		Type: cmp.Or(types[phonenumbers.GetNumberType(number)], "other"), Extension: extension,
	}
}

// This file recognises numbers that only look like phone numbers.

var (
	// DE89 3704 0044 0532 0130 00 (ISO 13616), even with wrong check digits.
	iban = regexp.MustCompile(`\b[A-Z]{2}[0-9]{2}(?:[ ]?[A-Z0-9]{4}){2,7}(?:[ ]?[A-Z0-9]{1,4})?\b`)
	// Dates.
	yearFirst = regexp.MustCompile(`\b(?:19|20)[0-9]{2}(?:-(?:0?[1-9]|1[0-2])-|\.(?:0?[1-9]|1[0-2])\.|/(?:0?[1-9]|` +
		`1[0-2])/)(?:0?[1-9]|[12][0-9]|3[01])\b`)
	dayFirst = regexp.MustCompile(`\b(?:0?[1-9]|[12][0-9]|3[01])(?:-[0-9]{1,2}-|\.[ ]?[0-9]{1,2}\.[ ]?|/[0-9]{1,2}/)(?:(?:19|` +
		`20)[0-9]{2}|[0-9]{2})\b`)
)

func (p *page) maskNumbers() {
	for _, form := range []*regexp.Regexp{iban, yearFirst, dayFirst} {
		for _, m := range form.FindAllIndex(p.left, -1) {
			if alone(p, m[0], m[1]) {
				p.take(m[0], m[1])
			}
		}
	}
}

// alone reports whether no digits continue a part of the text: 01.02.03.04.05 is not a date.
func alone(p *page, start, end int) bool {
	if r := p.after(end); strings.ContainsRune("./-", r) && r != 0 && unicode.IsDigit(p.after(end+1)) {
		return false
	}
	r := p.before(start)
	if r == '+' || unicode.IsDigit(r) {
		return false
	}
	return r == 0 || !strings.ContainsRune("./-", r) || !unicode.IsDigit(p.before(start-1))
}

var (
	// A decimal number, one with thousands, or an IP address.
	dotted   = regexp.MustCompile(`^(?:[0-9]+\.[0-9]+|[1-9][0-9]{0,2}(?:\.[0-9]{3}){2,}|(?:[0-9]{1,3}\.){3}[0-9]{1,3})$`)
	compact  = regexp.MustCompile(`^(?:19|20)[0-9]{6}$`)
	numbered = regexp.MustCompile(`^(?:[0-9]+\.)+[0-9]+$`)
)

// isPhonePlace reports whether a number can be a phone number by its form and surroundings.
func isPhonePlace(p *page, start, end int) bool {
	raw := p.text[start:end]
	if strings.HasPrefix(raw, "+") || strings.HasPrefix(raw, "＋") {
		r := p.before(start)
		return !unicode.IsDigit(r) && !glued(p, end)
	}
	if glued(p, end) || !freeBefore(p, start) || moneyAfter.MatchString(p.text[end:min(len(p.text), end+8)]) {
		return false
	}
	switch cueOf(p, start) {
	case cuePhone:
		return true
	case cueOther:
		return false
	}
	switch {
	case dotted.MatchString(raw):
		return false
	case compact.MatchString(raw):
		_, err := time.Parse("20060102", raw)
		return err != nil
	case numbered.MatchString(raw) && !strings.HasPrefix(raw, "0") && strings.Count(raw, ".") > 4:
		return false // a chapter, a version, an object identifier
	}
	return true
}

// moneyAfter are units after an amount.
var moneyAfter = regexp.MustCompile(`^[ \x{00A0}]?(?:€|\$|£|¥|%|(?:EUR|USD|GBP|CHF|JPY|PLN|km|kg|m²|MB|GB|bytes)\b)`)

// glued reports whether the text directly after a number continues it.
func glued(p *page, end int) bool {
	r := p.after(end)
	switch {
	case r == 'x' || r == 'X':
		_, n := extension(p, end)
		return n == 0
	case inWord(r), r != 0 && strings.ContainsRune("_@=%€$£", r):
		return true
	case r == ',' || r == ':' || r == '.' || r == '-' || r == '/':
		next := p.after(end + 1)
		return unicode.IsDigit(next) && r != ',' && p.left[end+1] != 0 || r == ',' && unicode.IsDigit(next) && shortTail(p.text[end+1:]) ||
			unicode.IsLetter(next) && (r == '-' || r == '/')
	}
	return false
}

// shortTail reports whether s begins with at most two digits, as cents do.
func shortTail(s string) bool { return len(s)-len(strings.TrimLeft(s, "0123456789")) <= 2 }

// freeBefore reports whether the text directly before a number does not belong to it.
func freeBefore(p *page, start int) bool {
	r := p.before(start)
	switch {
	case r == 0:
		return true
	case inWord(r), strings.ContainsRune("_#$€£¥@=%\\&§+", r):
		return false
	case strings.ContainsRune(".-/–,:", r):
		_, n := utf8.DecodeLastRuneInString(p.text[:start])
		before := p.before(start - n)
		if unicode.IsDigit(before) {
			return false
		}
		// Tel.030…, but neither A-1234567 nor v1.2
		return !unicode.IsLetter(before) || cueOf(p, start) == cuePhone || r == ':' || r == ','
	}
	return true
}

type cue int

const (
	cueNone cue = iota
	cuePhone
	cueOther
)

const cueWindow = 32

var word = regexp.MustCompile(`[\p{L}\p{M}]+`)

// cueOf returns the cue that is nearest before a place on its line, within three words.
func cueOf(p *page, at int) cue {
	before := p.text[max(0, at-cueWindow):at]
	if i := strings.LastIndexByte(before, '\n'); i >= 0 {
		before = before[i+1:]
	}
	words := word.FindAllString(before, -1)
	for _, w := range slices.Backward(words[max(0, len(words)-3):]) {
		w = strings.ToLower(w)
		switch {
		case lists["phoneWords"][w]:
			return cuePhone
		case lists["otherWords"][w]:
			return cueOther
		}
	}
	return cueNone
}
