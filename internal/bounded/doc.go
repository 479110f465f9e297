// Package bounded makes the HTTP clients of the whole program: whatever a server
// answers, it is read up to a bound and no further. [Client] bounds the bytes of an
// answer's head and body, what a body may be made of (the depth and the number of JSON
// or XML elements, the length of one event of a stream), the time until it is whole and
// the time between two pieces of it. No redirect is followed, and no compressed answer is
// taken: of one nobody knows how long it is before it was unpacked.
//
// TestEveryClientIsBounded (architecture_test.go) finds HTTP clients that are made
// anywhere else.
package bounded
