// Package auth authenticates requests: it converts credentials to a [Principal]. Authorisation is in package gateway,
// which has a table of routes with their scopes.
package auth
