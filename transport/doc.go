// Package transport is what the gateway knows of a realtime voice model: a
// [Transport] that opens a connection, a [Conn] that carries [Command] values to
// the model and [Event] values back, and a [Capabilities] record that says what
// this model can do. It names no provider and nothing of the caller's side.
//
// The packages below it speak one wire each, and wires is the table of them; transporttest holds a
// scripted fake and the conformance suite that every adapter passes.
//
// Audio is PCM16, signed little-endian, mono, everywhere in this package.
package transport
