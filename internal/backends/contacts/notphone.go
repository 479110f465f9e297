package contacts

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

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
