package ws

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"net"
	"unicode/utf8"

	"github.com/coder/websocket"
)

// The opcodes of RFC 6455, section 5.2; those of messages are websocket.MessageType.
const (
	opContinuation = 0
	opText         = byte(websocket.MessageText)
	opBinary       = byte(websocket.MessageBinary)
	opClose        = 8
	opPing         = 9
	opPong         = 10
)

// The bits of a header.
const (
	finBit    = 0x80
	rsvBits   = 0x70
	opBits    = 0x0f
	controls  = 0x08 // in the opcodes of control frames
	maskBit   = 0x80
	shortBits = 0x7f
)

const maxControl = 125

type header struct {
	fin    bool
	opcode byte
	length uint64
	masked bool
	key    uint32 // as on the wire, read as little-endian
	size   int    // size of the header itself, in bytes
}

// parseHeader reads the header at the beginning of p. need is the number of bytes of p that it needs to continue; zero
// if the header is complete.
func parseHeader(p []byte) (h header, need int) {
	if len(p) < 2 {
		return h, 2
	}
	h = header{fin: p[0]&finBit != 0, opcode: p[0] & opBits, length: uint64(p[1] & shortBits), masked: p[1]&maskBit != 0, size: 2}
	short := h.length
	switch short {
	case 126:
		h.size += 2
	case 127:
		h.size += 8
	}
	length := h.size
	if h.masked {
		h.size += 4
	}
	if len(p) < h.size {
		return h, h.size
	}
	switch short {
	case 126:
		h.length = uint64(binary.BigEndian.Uint16(p[2:]))
	case 127:
		h.length = binary.BigEndian.Uint64(p[2:])
	}
	if h.masked {
		h.key = binary.LittleEndian.Uint32(p[length:])
	}
	return h, 0
}

// check returns an error if a header violates the protocol. first is its first byte; inside means within a message.
func (c *Conn) check(h header, first byte, inside bool) error {
	known := h.opcode == opContinuation || h.opcode == opText || h.opcode == opBinary
	switch {
	case first&rsvBits != 0:
		return violation("a frame has reserved bits set")
	case h.masked == c.client:
		return violation("a server's frame is masked, or a client's frame is not")
	case h.opcode&controls != 0 && h.opcode > opPong, h.opcode&controls == 0 && !known:
		return violation(fmt.Sprintf("the opcode %d is unknown", h.opcode))
	case h.opcode&controls != 0 && (!h.fin || h.length > maxControl):
		return violation("a control frame is too long, or fragmented")
	case h.opcode == opContinuation && !inside:
		return violation("a message begins with a continuation")
	case known && h.opcode != opContinuation && inside:
		return violation("a message begins within another")
	case h.length > 1<<62:
		return violation("a frame's length is negative")
	}
	return nil
}

type violation string

func (v violation) Error() string { return "protocol violation: " + string(v) }

func (c *Conn) writeFrame(opcode byte, m *Message) error {
	frame := c.seal(opcode, m)
	c.writing.Lock()
	err := c.put(opcode, frame)
	c.writing.Unlock()
	c.settle()
	return err
}

func (c *Conn) put(opcode byte, frame []byte) error {
	if c.closeSent || c.closed.Load() {
		return net.ErrClosed
	}
	c.closeSent = opcode == opClose
	var err error
	if !c.direct {
		err = c.under.MakeRoom(len(frame)) // so that TLS does not wait
	}
	if err == nil {
		c.watch.spoke()
		_, err = c.stream.Write(frame)
	}
	if err != nil && c.closed.Load() {
		return net.ErrClosed
	}
	return err
}

// seal puts the header before the payload of m, masks it if this side is the client, and returns the frame.
func (c *Conn) seal(opcode byte, m *Message) []byte {
	payload := m.Payload()
	var h [headroom]byte
	h[0] = finBit | opcode
	n := 2
	switch length := len(payload); {
	case length < 126:
		h[1] = byte(length)
	case length < 1<<16:
		h[1] = 126
		binary.BigEndian.PutUint16(h[2:], uint16(length))
		n = 4
	default:
		h[1] = 127
		binary.BigEndian.PutUint64(h[2:], uint64(length))
		n = 10
	}
	if c.client {
		key := rand.Uint32() // unpredictable: a ChaCha8 seeded by the runtime
		h[1] |= maskBit
		binary.LittleEndian.PutUint32(h[n:], key)
		n += 4
		mask(payload, key)
	}
	copy(m.B[headroom-n:], h[:n])
	return m.B[headroom-n:]
}

// answer writes a control frame for the reading goroutine. Within a turn it must not wait for the network, nor for
// another goroutine that may wait for it. It keeps only one answer for the next writer: the other side needs a pong
// only for its last ping, and nothing follows a close frame.
func (c *Conn) answer(opcode byte, payload []byte) {
	if !c.heard.Load() {
		_ = c.control(opcode, payload) // the next read returns the error
		return
	}
	m := NewMessage()
	m.B = append(m.B, payload...)
	frame := c.seal(opcode, m)
	m.B = append(m.B[:0], frame...)
	if old := c.owed.Swap(m); old != nil {
		old.free()
	}
	c.settle()
}

// settle writes an owed answer, and closes the connection if it is leaving, unless another goroutine is writing, which
// calls settle afterwards.
func (c *Conn) settle() {
	for (c.owed.Load() != nil || c.leaving.Load() && !c.closed.Load()) && c.writing.TryLock() {
		last := c.leaving.Load()
		if m := c.owed.Swap(nil); m != nil {
			// If it is full, the other side is not reading.
			if !c.under.Full() {
				_ = c.put(m.B[0]&opBits, m.B) // the next read returns the error
			}
			m.free()
		}
		c.writing.Unlock()
		if last {
			_ = c.CloseNow()
		}
	}
}

func (c *Conn) control(opcode byte, payload []byte) error {
	m := NewMessage()
	defer m.free()
	m.B = append(m.B, payload...)
	return c.writeFrame(opcode, m)
}

var errCloseReason = errors.New("a close needs a code that may be sent and a reason of at most 123 bytes")

func closePayload(code websocket.StatusCode, reason string) ([]byte, error) {
	if code == websocket.StatusNoStatusRcvd {
		return nil, nil
	}
	if len(reason) > maxControl-2 || !mayBeSent(code) {
		return nil, fmt.Errorf("%w: %d with %d bytes", errCloseReason, code, len(reason))
	}
	return append(binary.BigEndian.AppendUint16(nil, uint16(code)), reason...), nil
}

func parseClose(p []byte) (e websocket.CloseError, err error) {
	if len(p) == 0 {
		return websocket.CloseError{Code: websocket.StatusNoStatusRcvd}, nil
	}
	if len(p) < 2 {
		return e, violation("a close frame has half a code")
	}
	e = websocket.CloseError{Code: websocket.StatusCode(binary.BigEndian.Uint16(p)), Reason: string(p[2:])}
	if !mayBeSent(e.Code) || !utf8.ValidString(e.Reason) {
		return e, violation(fmt.Sprintf("a close frame has the code %d, or a reason that is not UTF-8", e.Code))
	}
	return e, nil
}

// mayBeSent reports whether a close code may appear on the wire (RFC 6455, section 7.4, and IANA's registry).
func mayBeSent(code websocket.StatusCode) bool {
	switch code {
	case 1004, websocket.StatusNoStatusRcvd, websocket.StatusAbnormalClosure, websocket.StatusTLSHandshake:
		return false
	}
	return code >= websocket.StatusNormalClosure && code <= websocket.StatusBadGateway || code >= 3000 && code <= 4999
}

// mask masks or unmasks p (RFC 6455, section 5.3) with the key on the wire, read as little-endian. It returns the key
// for the bytes after p.
func mask(p []byte, key uint32) uint32 {
	long := uint64(key)<<32 | uint64(key)
	for len(p) >= 32 {
		binary.LittleEndian.PutUint64(p, binary.LittleEndian.Uint64(p)^long)
		binary.LittleEndian.PutUint64(p[8:], binary.LittleEndian.Uint64(p[8:])^long)
		binary.LittleEndian.PutUint64(p[16:], binary.LittleEndian.Uint64(p[16:])^long)
		binary.LittleEndian.PutUint64(p[24:], binary.LittleEndian.Uint64(p[24:])^long)
		p = p[32:]
	}
	for len(p) >= 8 {
		binary.LittleEndian.PutUint64(p, binary.LittleEndian.Uint64(p)^long)
		p = p[8:]
	}
	for i := range p {
		p[i] ^= byte(key)
		key = bits.RotateLeft32(key, -8)
	}
	return key
}
