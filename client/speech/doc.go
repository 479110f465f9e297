// Package speech holds what the callers of a load run say: recordings and lines for the
// built-in voice, at one rate, with the places where the user speaks in them. Each is
// decoded once and shared by all callers.
package speech
