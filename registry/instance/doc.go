// Package instance finds, for a JSON Schema and for each schema in it, a value that is
// valid, or shows that no value can exist.
//
// The search works with a simplified schema: keywords that are hard to reason about (not,
// the "exactly one" of oneOf, dependentSchemas, …) are left out. So each value that is found
// is checked against the full schema, by the library that checks calls; and if no value
// satisfies the simplified schema, no value satisfies the full one. If neither succeeds, the
// answer is "not known". Texts are found by automata made of the patterns and formats
// (text.go), numbers by exact arithmetic (number.go).
//
// The work is bounded by steps and not by a clock, so that a schema always gets the same
// answer.
package instance
