package wire

import (
	"fmt"
	"math/rand/v2"
)

// IDs makes ids that are the same in every run with the same seed. It must not be used
// concurrently.
type IDs struct {
	rand *rand.Rand
}

// NewIDs makes a source of ids.
func NewIDs(seed uint64) *IDs { return &IDs{rand: rand.New(rand.NewPCG(seed, 0x696473))} }

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Base62 returns n letters and digits.
func (i *IDs) Base62(n int) string {
	b := make([]byte, n)
	for k := range b {
		b[k] = base62[i.rand.IntN(len(base62))]
	}
	return string(b)
}

// Digits returns n decimal digits; the first is not 0.
func (i *IDs) Digits(n int) string {
	b := make([]byte, n)
	for k := range b {
		b[k] = base62[i.rand.IntN(10)]
	}
	if n > 0 && b[0] == '0' {
		b[0] = base62[1+i.rand.IntN(9)]
	}
	return string(b)
}

// UUID returns a random (version 4) UUID (RFC 9562, 5.4).
func (i *IDs) UUID() string {
	hi, lo := i.rand.Uint64(), i.rand.Uint64()
	hi = hi&^0xf000 | 0x4000
	lo = lo&^(3<<62) | 2<<62
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", hi>>32, hi>>16&0xffff, hi&0xffff, lo>>48, lo&0xffffffffffff)
}
