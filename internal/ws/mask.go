package ws

import (
	"encoding/binary"
	"math/bits"
)

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
