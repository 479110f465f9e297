package calendar

import (
	"net/mail"
	"regexp"
	"strings"
)

// addressForm is the accepted form of an e-mail address: what mailboxes have in practice. RFC
// 5322 also allows quotes, comments and spaces, which no address has in practice and which would
// have to be escaped in a calendar.
var addressForm = regexp.MustCompile(`^[A-Za-z0-9.!#$%&'*+/=?^_{|}~-]{1,64}@[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)+$`)

// maxAddress is the most characters of an address (RFC 5321 section 4.5.3.1.3).
const maxAddress = 254

// IsAddress says whether s is an e-mail address alone, without a name.
func IsAddress(s string) bool {
	if len(s) > maxAddress || !addressForm.MatchString(s) {
		return false
	}
	a, err := mail.ParseAddress(s) // two dots together, or a dot at an end
	return err == nil && a.Name == "" && a.Address == s
}

// Addresses splits a list into e-mail addresses, each once and trimmed, and invalid entries.
// Order is kept; a leading "mailto:" is removed.
func Addresses(list []string) (valid, invalid []string) {
	seen := map[string]bool{}
	for _, s := range list {
		a := strings.TrimSpace(s)
		if len(a) > 7 && strings.EqualFold(a[:7], "mailto:") {
			a = a[7:]
		}
		switch {
		case !IsAddress(a):
			invalid = append(invalid, s)
		case !seen[strings.ToLower(a)]:
			seen[strings.ToLower(a)] = true
			valid = append(valid, a)
		}
	}
	return valid, invalid
}
