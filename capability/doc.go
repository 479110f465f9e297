// Package capability holds what tools need of the gateway and do not own: the
// blocks of users, voice sessions that are offered to a client, and the messages
// that a client of the text side is told. Each is a small interface that a tool
// names as a field of its Needs. Blocks are kept in package store; voice sessions in
// this process's memory ([MemoryVoiceSessions]), which forgets at a restart and is
// not shared between nodes.
//
// Everything here may be used from any number of goroutines at once.
package capability
