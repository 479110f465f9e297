// Package witness remembers outside of the store's streams what was acknowledged, so that
// a damaged stream is never taken for a shorter one.
//
// Judge is the comparison, pure.
package witness
