package calendar

import (
	"net/mail"
	"regexp"
)

// addressForm is the accepted form of an e-mail address. RFC 5322 also allows quotes, comments and spaces, which real
// addresses do not have and a calendar would have to escape.
var addressForm = regexp.MustCompile(`^[A-Za-z0-9.!#$%&'*+/=?^_{|}~-]{1,64}@[A-Za-z0-9]([A-Za-z0-9-]{0,61}` +
	`[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)+$`)

// maxAddress is the maximum length of an address (RFC 5321 section 4.5.3.1.3).
const maxAddress = 254

// IsAddress reports whether s is an e-mail address without a name.
func IsAddress(s string) bool {
	if len(s) > maxAddress || !addressForm.MatchString(s) {
		return false
	}
	a, err := mail.ParseAddress(s) // refuses two dots together, or a dot at an end
	return err == nil && a.Name == "" && a.Address == s
}
