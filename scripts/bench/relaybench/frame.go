//go:build linux

package main

import "encoding/binary"

// The opcodes of RFC 6455, section 5.2.
const (
	opText   = 1
	opBinary = 2
	opClose  = 8
	opPing   = 9
	opPong   = 10
)

// finBit marks a frame that ends its message, maskBit one of a client.
const (
	finBit  = 0x80
	maskBit = 0x80
)

// appendFrame appends one whole frame. A client's is masked with a key of zeros, so that
// it can be built once and sent repeatedly; the receiver's work of unmasking is the same.
func appendFrame(dst []byte, opcode byte, payload []byte, client bool) []byte {
	var mask byte
	if client {
		mask = maskBit
	}
	dst = append(dst, finBit|opcode)
	switch n := len(payload); {
	case n < 126:
		dst = append(dst, mask|byte(n))
	case n < 1<<16:
		dst = binary.BigEndian.AppendUint16(append(dst, mask|126), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint64(append(dst, mask|127), uint64(n))
	}
	if client {
		dst = append(dst, 0, 0, 0, 0)
	}
	return append(dst, payload...)
}

// maxHead is how many bytes of a payload a frameReader keeps: all of a control frame, and
// enough of a message to recognise it.
const maxHead = 125

// frame is what a frameReader reports about a frame.
type frame struct {
	opcode byte
	length uint64
	head   []byte // the payload's first bytes, unmasked; valid during the call
}

// frameReader finds the frames in a stream that arrives in pieces, and keeps only the
// beginning of their payloads. The zero value is ready for use.
type frameReader struct {
	header  [14]byte
	have    int    // bytes in header
	inside  bool   // the header is complete
	left    uint64 // of the payload
	current frame
	head    [maxHead]byte
	kept    int
}

// feed takes the next piece and calls each for every frame that is complete with it.
func (r *frameReader) feed(p []byte, each func(frame)) {
	for len(p) > 0 {
		if !r.inside {
			r.header[r.have] = p[0]
			r.have++
			p = p[1:]
			r.begin()
		} else {
			n := int(min(uint64(len(p)), r.left))
			r.kept += copy(r.head[r.kept:], p[:n])
			r.left -= uint64(n)
			p = p[n:]
		}
		if r.inside && r.left == 0 {
			r.finish(each)
		}
	}
}

// begin checks whether the header is complete.
func (r *frameReader) begin() {
	if r.have < 2 {
		return
	}
	need, short := 2, r.header[1]&^maskBit
	switch short {
	case 126:
		need += 2
	case 127:
		need += 8
	}
	length := need
	if r.header[1]&maskBit != 0 {
		need += 4
	}
	if r.have < need {
		return
	}
	r.current = frame{opcode: r.header[0] & 0x0f, length: uint64(short)}
	switch short {
	case 126:
		r.current.length = uint64(binary.BigEndian.Uint16(r.header[2:length]))
	case 127:
		r.current.length = binary.BigEndian.Uint64(r.header[2:length])
	}
	r.inside, r.left, r.kept = true, r.current.length, 0
}

// finish reports the complete frame.
func (r *frameReader) finish(each func(frame)) {
	if r.header[1]&maskBit != 0 {
		key := r.header[r.have-4 : r.have]
		for i := range r.head[:r.kept] {
			r.head[i] ^= key[i%4]
		}
	}
	r.current.head = r.head[:r.kept]
	r.have, r.inside = 0, false
	each(r.current)
}
