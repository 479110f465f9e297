// Package transport defines a realtime voice model as the gateway sees it: a
// [Transport] opens a connection, a [Conn] carries [Command] values to the model and
// [Event] values back, and a [Capabilities] record describes what the model can do. The
// package names no provider and knows nothing about the gateway's clients.
//
// Each package below it speaks one wire protocol.
// Package transporttest has a scripted fake and the conformance suite that every adapter
// passes.
//
// Audio is PCM16, signed little-endian, mono, everywhere in this package.
package transport
