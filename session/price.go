package session

import "voicegw/protocol"

// The cost of a client's messages is limited per second, with a burst. protocol.FramesPerSecond limits frames.
const (
	controlRate  = 50
	controlBurst = 200
)

// price returns a message's cost, at least 1, according to the work it causes. docs/protocol.md has the table.
func price(m protocol.ClientMessage) int {
	switch m.(type) {
	case *protocol.InputText, *protocol.InputImage, *protocol.InputContext, *protocol.ConfirmationResolve:
		return 10
	case *protocol.InputActivity, *protocol.Interrupt:
		return 4
	}
	return 1
}
