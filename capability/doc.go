// Package capability holds what tools need of the gateway and do not own: the
// blocks of users, voice sessions that are offered to a client, and what a client of
// the text side is told and shown. Each is a small interface that a tool
// names as a field of its Needs. Package store keeps blocks and voice sessions.
//
// Everything here may be used from any number of goroutines at once.
package capability
