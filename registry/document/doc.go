// Package document reads JSON documents strictly, writes them in one canonical form, and names
// places in them and what is wrong there: each [Problem] is told an author or a model in words.
// It knows what no text for a model or a person may hold ([Hidden], [Wordless]), and nothing of tools.
//
// A decoded value is nil, a bool, a string, a json.Number, a []any or a map[string]any. All functions may
// be called concurrently.
package document
