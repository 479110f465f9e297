// Package wires is the table of all wires that the gateway can speak. To add a wire, add a
// folder below package transport and one line here; docs/providers.md describes each step.
package config

import (
	"voicegw/transport"
	"voicegw/transport/gemini"
	"voicegw/transport/openai"
)

// All returns one row per wire. The first is that of the default provider, for a configuration
// that names none.
func All() []transport.Wire {
	return []transport.Wire{
		gemini.Wire(),
		openai.Wire(),
	}
}
