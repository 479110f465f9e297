// Package instance finds, for a JSON Schema and for each schema in it, a value that is
// valid, or shows that no value can exist.
//
// A schema is read as less than it says: what is hard to reason about (not, the "one alone"
// of oneOf, dependentSchemas, …) is left away. So of values that are found each is tried
// with the schema itself, by the library that checks calls; and where nothing satisfies
// what is left, nothing satisfies the schema. Where neither succeeds, the answer is that
// it is not known. Texts are found by automata made of the patterns and formats
// (text.go), numbers by exact arithmetic (number.go).
//
// The work is bounded by steps and not by a clock, so that one schema always has one
// answer.
package instance
