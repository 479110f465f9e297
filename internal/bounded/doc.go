// Package bounded makes the HTTP clients of the whole program: of any answer, only a bounded
// amount is read. [Client] bounds the bytes of an answer's head and body, the content of a body
// (the depth and the number of JSON or XML elements, the length of one event of a stream), the
// time of the whole answer and the time between two pieces of it. No redirect is followed, and
// no compressed answer is accepted, because its size is unknown before it is decompressed.
//
// TestEveryClientIsBounded (architecture_test.go) finds HTTP clients that are made anywhere
// else.
package bounded
