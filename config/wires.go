package config

import (
	"voicegw/transport"
	"voicegw/transport/gemini"
	"voicegw/transport/openai"
)

// Wires returns one row per wire; docs/providers.md describes how to add one. The first is that of the default provider.
func Wires() []transport.Wire {
	return []transport.Wire{
		gemini.Wire(),
		openai.Wire(),
	}
}
