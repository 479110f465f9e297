package gemini

import (
	"sync"

	"github.com/coder/websocket"

	"voicegw/internal/ws"
	"voicegw/transport"
)

// maxTyped bounds the typed text that waits for a tool, in bytes.
const maxTyped = 256 << 10

// errTyped means that the user typed more during a tool call than is kept.
const errTyped errorText = "more than 256 KiB were typed while a tool ran"

// typed is the text that the user typed, and the added entries, during a tool call, for models that close the
// connection on such input (row.deafInCall). It is sent when no call is open any more.
type typed struct {
	mu    sync.Mutex
	turns []textTurn
	bytes int
	asks  bool // one of the turns wants an answer
}

// hold keeps a turn if the model waits for a tool, and reports whether it did. asks means that the
// turn wants an answer.
func (c *conn) hold(turn textTurn, asks bool) (bool, error) {
	if !c.row.deafInCall {
		return false, nil
	}
	c.typed.mu.Lock()
	defer c.typed.mu.Unlock()
	// Checked under the lock: the goroutine that ends the last call looks here afterwards.
	if !c.calls.waiting() {
		return false, nil
	}
	for _, part := range turn.Parts {
		c.typed.bytes += len(part.Text)
	}
	if c.typed.bytes > maxTyped {
		return false, errTyped
	}
	c.typed.turns = append(c.typed.turns, turn)
	c.typed.asks = c.typed.asks || asks
	return true, nil
}

func (c *conn) sendTyped() error {
	c.typed.mu.Lock()
	defer c.typed.mu.Unlock()
	if len(c.typed.turns) == 0 || c.calls.waiting() {
		return nil
	}
	m := ws.NewMessage()
	var err error
	if m.B, err = appendJSON(m.B, "clientContent", clientContent{Turns: c.typed.turns, TurnComplete: c.typed.asks}); err != nil {
		return c.fail("send", transport.KindInvalid, "", err)
	}
	c.typed.turns, c.typed.bytes, c.typed.asks = nil, 0, false
	return c.ws.Send(websocket.MessageText, m)
}
