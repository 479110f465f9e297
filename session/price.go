package session

import "voicegw/protocol"

// The cost of a client's messages is limited per second, with a burst. Its frames, including audio,
// are limited separately: protocol.FramesPerSecond.
const (
	controlRate  = 50
	controlBurst = 200
)

// price returns what a message costs, at least 1. It depends on how much work the message makes for
// the gateway or the model. docs/protocol.md has the table.
func price(m protocol.ClientMessage) int {
	switch m.(type) {
	case *protocol.InputText, *protocol.InputImage, *protocol.InputContext, *protocol.ConfirmationResolve:
		return 10
	case *protocol.InputActivity, *protocol.Interrupt:
		return 4
	}
	return 1
}
