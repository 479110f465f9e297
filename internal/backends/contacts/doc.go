// Package contacts finds contact data in a text: e-mail addresses, phone numbers, web addresses, and persons with their
// titles and positions.
//
// The same text always gives the same result. The package checks only the form: an address may have no mailbox, and a
// number may be unassigned. In doubt, it finds no contact: a phone number must be valid in its country's numbering plan
// (nyaruka/phonenumbers, from Google's libphonenumber), and the text around it must not indicate orders, days or money.
//
//	x := contacts.New()
//	found := x.Extract("Dr. Ada Lovelace, Head of Research: ada@example.org", "")
package contacts
