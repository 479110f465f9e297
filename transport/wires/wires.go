// Package wires is the table of all wires that the gateway can speak. A new wire is a
// folder below package transport and one line here; docs/providers.md says step by step how
// to add one.
package wires

import (
	"voicegw/transport"
	"voicegw/transport/gemini"
	"voicegw/transport/openai"
)

// All returns a row for each wire. The first is the one that a client gets where nothing is
// configured.
func All() []transport.Wire {
	return []transport.Wire{
		gemini.Wire(),
		openai.Wire(),
	}
}
