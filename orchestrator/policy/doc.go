// Package policy holds the rules for tool calls, the same for voice and text: budgets, keys that
// recognise repeated calls, limits on arguments, and how often a user is asked. A [Book] is what
// one conversation has used and remembers; package calls decides with it. Everything here is
// pure: no clock, no goroutine, no I/O.
package policy
