package session

import "voicegw/protocol"

// A client may send messages that cost so much a second, after a burst. What its frames
// cost, audio too, is counted apart: protocol.FramesPerSecond.
const (
	controlRate  = 50
	controlBurst = 200
)

// price is what a message costs, at least 1: the more, the more it makes the gateway or the
// model do. docs/protocol.md has the table.
func price(m protocol.ClientMessage) int {
	switch m.(type) {
	case *protocol.InputText, *protocol.ConfirmationResolve:
		return 10
	case *protocol.InputActivity, *protocol.Interrupt:
		return 4
	}
	return 1
}
