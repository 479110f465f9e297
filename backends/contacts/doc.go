// Package contacts finds in a text how somebody can be reached: e-mail addresses, phone
// numbers, web addresses, and persons with their titles and positions.
//
// It asks nobody and guesses nothing at random: the same text gives the same answer. It
// knows the shapes of things, not whether they exist: an address that it finds may have
// no mailbox, and a number nobody who answers. Where a shape is ambiguous it rather
// misses something than invents it: a number is a phone number only if its country's
// numbering plan (nyaruka/phonenumbers, from Google's libphonenumber) has such numbers
// and nothing beside it says that it counts orders, days or money.
//
//	x := contacts.New()
//	found := x.Extract("Dr. Ada Lovelace, Head of Research: ada@example.org", "")
package contacts
