// Package speech loads the recordings and built-in voice lines of load callers, at one rate, with the positions of
// the user's speech. Each is decoded once and shared by all callers.
package speech
