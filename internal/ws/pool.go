package ws

import "sync"

// blockSize is how much is read at once: 200 ms of a model's speech in base64.
const blockSize = 16 << 10

// block is a read buffer.
type block struct{ b [blockSize]byte }

// blocks are shared by all connections: one is taken when there is something to read, and
// given back when all of it has been processed.
var blocks = sync.Pool{New: func() any { return new(block) }}

// headroom is the longest header: that much space is kept free before a payload.
const headroom = 14

// Message is a message that is being built. Append its payload to B, whose first bytes are
// reserved for the header and must stay, and pass it to [Conn.Send].
type Message struct{ B []byte }

const (
	messageRoom = 2 << 10  // the usual size of a message: 60 ms of speech in base64
	maxPooled   = 64 << 10 // a larger buffer is not kept
)

// messages are shared by all connections. They also hold the parts of long messages.
var messages = sync.Pool{New: func() any { return &Message{B: make([]byte, 0, messageRoom)} }}

// NewMessage returns an empty message. A message that is not sent need not be freed.
func NewMessage() *Message {
	m := messages.Get().(*Message)
	m.B = append(m.B[:0], make([]byte, headroom)...)
	return m
}

// Payload returns what has been appended so far.
func (m *Message) Payload() []byte { return m.B[headroom:] }

func (m *Message) free() {
	if cap(m.B) <= maxPooled {
		messages.Put(m)
	}
}
