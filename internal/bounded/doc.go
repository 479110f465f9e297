// Package bounded provides the program's HTTP clients, which read only a bounded amount of any answer. [Client] bounds
// the size of an answer's head and body, the body's content (depth and number of JSON or XML elements, size of a
// stream's event), the total time and the time without data. It follows no redirects and rejects compressed answers,
// whose decompressed size is unknown.
//
// TestEveryClientIsBounded (architecture_test.go) finds HTTP clients created elsewhere.
package bounded
