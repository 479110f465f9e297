// Package script reads what the callers of a load run say, and what they expect: the
// same file is a load and a regression test. docs/load.md tells its authors every key.
//
// A file is read without guessing: all its problems are reported at once, each with its
// line.
package script
