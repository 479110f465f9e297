// Package auth decides who sends a request: it turns credentials into a [Principal].
//
// What a principal may do is not decided here: package gateway has one table of routes and the
// scopes that open them.
package auth
