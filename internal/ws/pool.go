package ws

import "sync"

// blockSize is the size of a read: 200 ms of a model's speech in base64.
const blockSize = 16 << 10

type block struct{ b [blockSize]byte }

// blocks are shared by all connections. A connection holds one only while it has unprocessed data.
var blocks = sync.Pool{New: func() any { return new(block) }}

// headroom is the length of the longest header, and of the space before a payload.
const headroom = 14

// Message is a message to send. Append its payload to B, whose first bytes are reserved for the header and must stay,
// and pass it to [Conn.Send].
type Message struct{ B []byte }

const (
	messageRoom = 2 << 10  // the usual size of a message: 60 ms of speech in base64
	maxPooled   = 64 << 10 // the largest buffer to keep
)

// messages are shared by all connections. They also hold the parts of long messages.
var messages = sync.Pool{New: func() any { return &Message{B: make([]byte, 0, messageRoom)} }}

// NewMessage returns an empty message. A message that is not sent need not be freed.
func NewMessage() *Message {
	m := messages.Get().(*Message)
	m.B = append(m.B[:0], make([]byte, headroom)...)
	return m
}

// Payload returns the bytes appended so far.
func (m *Message) Payload() []byte { return m.B[headroom:] }

func (m *Message) free() {
	if cap(m.B) <= maxPooled {
		messages.Put(m)
	}
}
