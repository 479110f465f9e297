// Package ws provides WebSocket connections (RFC 6455) whose cost depends only on their messages: one system call to
// write a message, one to read arrived data, no allocation for either, and no buffer while there is nothing to read or
// write.
//
// github.com/coder/websocket makes the handshakes on both sides, and this package uses its types (message types, close
// codes, errors). After the handshake this package reads and writes the connection itself, because the library keeps
// 8 KB of buffers for each connection and passes every message through a dozen locks. There are no extensions: audio
// does not compress.
package ws
