// Package ws holds WebSocket connections (RFC 6455) that cost what their messages cost:
// one system call to write a message, one to read what has come, no allocation for
// either, and no buffer while nothing is there to be read or written.
//
// github.com/coder/websocket makes the handshakes, on both sides, and its types are the
// types here (message types, close codes, errors); after the handshake the connection is
// read and written by this package, because that one keeps 8 KB of buffers for each and
// passes every message through a dozen locks. There are no extensions: audio does not
// compress.
package ws
