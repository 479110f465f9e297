// Package document parses JSON documents strictly, writes their canonical form, and reports [Problem]s at places in
// them. It also finds text that is invisible or meaningless to people ([Hidden], [Wordless]).
//
// A decoded value is nil, a bool, string, json.Number, []any or map[string]any. All functions are safe for concurrent
// use.
package document
