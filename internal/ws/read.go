package ws

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/coder/websocket"
)

type input struct {
	block *block // nil if there is no data
	r, w  int    // the data is block.b[r:w]
	tiny  [headroom]byte
}

func (in *input) unread() []byte {
	if in.block == nil {
		return nil
	}
	return in.block.b[in.r:in.w]
}

// free gives the block back. Unread data is lost.
func (in *input) free() {
	if in.block != nil {
		blocks.Put(in.block)
	}
	in.block, in.r, in.w = nil, 0, 0
}

// abandon leaves the block to the receiver of the last message in it, and moves unread data to another block.
func (in *input) abandon() {
	rest := in.unread()
	in.block, in.r, in.w = nil, 0, 0
	in.put(rest)
}

func (in *input) put(p []byte) {
	if len(p) > 0 {
		in.w += copy(in.take(), p)
	}
}

// take moves the unread data to the front of the block and returns the space after it, which is empty only if the whole
// block is unread.
func (in *input) take() []byte {
	if in.block == nil {
		in.block = blocks.Get().(*block)
	}
	if in.r > 0 {
		in.w = copy(in.block.b[:], in.block.b[in.r:in.w])
		in.r = 0
	}
	return in.block.b[in.w:]
}

func (in *input) Room() []byte { return in.take() }

func (in *input) GiveBack() {
	if in.r == in.w {
		in.free()
	}
}

// fill waits for at least one more byte.
func (c *Conn) fill() error {
	in := &c.in
	switch {
	case c.direct:
		n, err := c.under.ReadInto(in)
		in.w += n
		return c.ended(n, err)
	case in.block == nil:
		// There is no data: wait for the first bytes with the smallest possible buffer.
		n, err := c.readRecord(in.tiny[:])
		in.put(in.tiny[:max(n, 0)])
		return c.ended(n, err)
	}
	n, err := c.readRecord(in.take())
	in.w += n
	return c.ended(n, err)
}

// readRecord reads from TLS, at most one record. A record in which no frame begins costs the other side as much as a
// frame, because a sender of one-byte records makes much work with few bytes.
func (c *Conn) readRecord(p []byte) (int, error) {
	n, err := c.stream.Read(p)
	if n > 0 {
		if c.records++; c.records > 1 && !c.allowance.pay(0) {
			return 0, ErrFlood
		}
	}
	return n, err
}

// tryFill is fill within a turn: it returns nonblock.ErrWouldBlock instead of waiting, and errTurnOver at a bound.
func (c *Conn) tryFill() (err error) {
	in := &c.in
	if c.share.bytes >= turnBytes || c.share.records >= turnRecords {
		return errTurnOver
	}
	var n int
	if c.direct {
		n, err = c.under.TryReadInto(in)
		in.w += n
	} else {
		c.share.records++
		n, err = c.readRecord(in.take())
		in.w += n
		if n == 0 {
			in.GiveBack()
		}
	}
	c.share.bytes += n
	return c.ended(n, err)
}

func (c *Conn) ended(n int, err error) error {
	switch {
	case n > 0:
		c.watch.heard()
		return nil // the next read returns the error again
	case err == nil || errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF // the end is unexpected without a close frame
	}
	return err
}

type progress struct {
	inside bool // within a message, whose parts are joined in Conn.long
	typ    websocket.MessageType
	framed bool // h is the header of the current frame
	h      header
	left   uint64 // the length of the rest of its payload; for parts of long messages
	key    uint32 // the masking key for the rest
}

// advance takes a message out of the unread data, and answers control frames. If need is not 0, it needs that many
// unread bytes to continue, at most a block. Within a turn it returns errTurnOver after enough frames. The caller must
// hold c.reading.
func (c *Conn) advance() (typ websocket.MessageType, p []byte, need int, err error) {
	at := &c.at
	for {
		if !at.framed {
			if c.share.frames >= turnFrames && c.heard.Load() {
				return 0, nil, 0, errTurnOver
			}
			if need, err = c.header(); need > 0 || err != nil {
				return 0, nil, need, err
			}
			c.share.frames++
		}
		switch h := at.h; {
		case h.opcode&controls != 0:
			p, need, err = c.whole()
			if need > 0 || err != nil {
				return 0, nil, need, err
			}
			if err := c.takeControl(h.opcode, p); err != nil {
				return 0, nil, 0, err
			}
		case !at.inside && h.fin && h.length <= blockSize-headroom:
			p, need, err = c.whole()
			return websocket.MessageType(h.opcode), p, need, err
		default:
			if need, err = c.part(); need > 0 || err != nil {
				return 0, nil, need, err
			}
			if h.fin {
				at.inside = false
				return at.typ, c.long.B, 0, nil
			}
		}
	}
}

// header takes a header and checks it. It first gives an empty block back.
func (c *Conn) header() (need int, err error) {
	if c.in.r == c.in.w {
		c.in.free()
	}
	p := c.in.unread()
	h, need := parseHeader(p)
	if need > 0 {
		return need, nil
	}
	if err := c.check(h, p[0], c.at.inside); err != nil {
		c.refuse(websocket.StatusProtocolError, err)
		return 0, err
	}
	if !c.allowance.pay(min(h.length, uint64(c.limit))) {
		return 0, ErrFlood // the session sends the reason in its close frame
	}
	c.in.r += h.size
	c.records = 0
	c.at.h, c.at.framed, c.at.left, c.at.key = h, true, h.length, h.key
	return 0, nil
}

// refuse sends the other side the reason why the connection ends.
func (c *Conn) refuse(code websocket.StatusCode, why error) {
	reason := why.Error()
	payload, err := closePayload(code, reason[:min(len(reason), maxControl-2)])
	if err == nil {
		c.answer(opClose, payload)
	}
}

// whole takes the payload of a frame, which must fit into a block, without copying it.
func (c *Conn) whole() (p []byte, need int, err error) {
	h := c.at.h
	if h.length > uint64(c.limit) {
		return nil, 0, c.tooBig()
	}
	n := int(h.length)
	if len(c.in.unread()) < n {
		return nil, n, nil
	}
	p = c.in.unread()[:n]
	c.in.r += n
	if h.masked {
		mask(p, h.key)
	}
	c.at.framed = false
	return p, 0, nil
}

// part appends the available part of a frame's payload to c.long, so that the length in a header allocates no memory.
func (c *Conn) part() (need int, err error) {
	at := &c.at
	if !at.inside {
		at.inside, at.typ = true, websocket.MessageType(at.h.opcode)
		c.long = messages.Get().(*Message)
		c.long.B = c.long.B[:0]
	}
	if at.left > uint64(c.limit-int64(len(c.long.B))) {
		return 0, c.tooBig()
	}
	p := c.in.unread()
	p = p[:min(uint64(len(p)), at.left)]
	if at.h.masked {
		at.key = mask(p, at.key)
	}
	c.long.B = append(c.long.B, p...)
	c.in.r += len(p)
	if at.left -= uint64(len(p)); at.left > 0 {
		return 1, nil
	}
	at.framed = false
	return 0, nil
}

func (c *Conn) tooBig() error {
	err := fmt.Errorf("%w: it has more than %d bytes", websocket.ErrMessageTooBig, c.limit)
	c.refuse(websocket.StatusMessageTooBig, err)
	return err
}

// takeControl answers a control frame. It returns a close frame as the error that ends the reading.
func (c *Conn) takeControl(opcode byte, p []byte) error {
	switch opcode {
	case opPing:
		c.answer(opPong, p)
	case opPong:
		if len(p) == 4 {
			c.proven.Store(binary.BigEndian.Uint32(p))
		}
	case opClose:
		said, err := parseClose(p)
		if err != nil {
			c.refuse(websocket.StatusProtocolError, err)
			return err
		}
		if payload, err := closePayload(said.Code, said.Reason); err == nil {
			c.answer(opClose, payload) // unless it answers ours
		}
		return said
	}
	return nil
}

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
