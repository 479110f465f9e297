// Package contacts finds contact data in a text: e-mail addresses, phone numbers, web
// addresses, and persons with their titles and positions.
//
// It uses no network and no randomness: the same text always gives the same result. It
// knows the form of things, not whether they exist: an address that it finds may have
// no mailbox, and a number may be unassigned. If a form is ambiguous, it prefers missing a
// contact to inventing one: a number is a phone number only if its country's
// numbering plan (nyaruka/phonenumbers, from Google's libphonenumber) has such numbers
// and nothing beside it indicates that it counts orders, days or money.
//
//	x := contacts.New()
//	found := x.Extract("Dr. Ada Lovelace, Head of Research: ada@example.org", "")
package contacts
