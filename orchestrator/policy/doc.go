// Package policy decides what becomes of a tool call: whether it is a repeat, known,
// allowed, within its turn's budget and valid, what of it is lowered, and whether a
// person has to approve it first. It is the one path for voice and text, and it is
// pure: no clock, no goroutine, no I/O. A [Book] is a value of one conversation;
// whoever owns it carries out what it decides.
package policy
