package audio

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/segmentio/asm/base64"
)

// AppendBase64 appends src in base64 with the standard alphabet and padding
// (RFC 4648 section 4) to dst. It allocates nothing if dst has enough capacity. dst's free
// capacity and src must not overlap.
func AppendBase64(dst, src []byte) []byte {
	n := base64.StdEncoding.EncodedLen(len(src))
	dst = slices.Grow(dst, n)
	at := len(dst)
	dst = dst[:at+n]
	base64.StdEncoding.Encode(dst[at:], src)
	return dst
}

// AppendFromBase64 decodes src and appends the result to dst. It accepts the standard and
// the URL-safe alphabet (RFC 4648 sections 4 and 5), also mixed, each with full
// padding or none, and ignores the value of left-over bits, as encoding/base64
// does. For any other input, including line breaks, it returns ErrBase64 and dst unchanged.
//
// It allocates nothing if dst has enough capacity. dst may be src[:0]: src is then
// decoded in place, and is lost even if an error is returned. Any other
// overlap of dst's free capacity and src is not allowed.
//
// The standard alphabet is the fast one; URL-safe input is decoded byte by
// byte.
func AppendFromBase64(dst, src []byte) ([]byte, error) {
	body, err := trimPadding(src)
	if err != nil {
		return dst, err
	}
	// Decoding in place destroys the input of a second attempt, so the
	// alphabet must be known before.
	inPlace := len(body) > 0 && cap(dst) > len(dst) && &dst[:len(dst)+1][len(dst)] == &body[0]
	n := len(body)/4*3 + max(len(body)%4-1, 0)
	grown := slices.Grow(dst, n)
	out := grown[len(dst) : len(dst)+n]

	fast := !inPlace || (bytes.IndexByte(body, '-') < 0 && bytes.IndexByte(body, '_') < 0)
	if fast {
		got, err := base64.RawStdEncoding.Decode(out, body)
		if err == nil && got == n {
			return grown[:len(dst)+n], nil
		}
		if err == nil || inPlace {
			// The decoder skips line breaks: fewer bytes came out.
			return dst, fmt.Errorf("%w: %d characters hold one outside the alphabet or a line break", ErrBase64, len(src))
		}
	}
	if at := decodeAny(out, body); at >= 0 {
		return dst, fmt.Errorf("%w: byte %d of %d is outside both alphabets", ErrBase64, at, len(src))
	}
	return grown[:len(dst)+n], nil
}

// trimPadding returns src without its padding, if the padding and the length are
// valid.
func trimPadding(src []byte) ([]byte, error) {
	body := src
	for len(src)-len(body) < 2 && len(body) > 0 && body[len(body)-1] == '=' {
		body = body[:len(body)-1]
	}
	if len(body)%4 == 1 || (len(body) < len(src) && len(src)%4 != 0) {
		return nil, fmt.Errorf("%w: %d characters with %d of padding", ErrBase64, len(src), len(src)-len(body))
	}
	return body, nil
}

// notBase64 marks a byte of decodeTable that is in neither alphabet.
const notBase64 = 0xFF

// decodeTable maps a character of either alphabet to its six bits.
var decodeTable = func() (t [256]byte) {
	for i := range t {
		t[i] = notBase64
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for i, c := range []byte(alphabet) {
		t[c] = byte(i)
	}
	t['-'], t['_'] = t['+'], t['/']
	return t
}()

// decodeAny decodes src, which has no padding, into out, which has the exact
// size and may begin where src begins. It returns the position of the first
// character outside both alphabets, or -1.
func decodeAny(out, src []byte) int {
	at := 0
	for len(src)-at >= 4 {
		q := src[at : at+4]
		a, b, c, d := decodeTable[q[0]], decodeTable[q[1]], decodeTable[q[2]], decodeTable[q[3]]
		if a|b|c|d == notBase64 {
			break
		}
		o := out[at/4*3 : at/4*3+3]
		o[0], o[1], o[2] = a<<2|b>>4, b<<4|c>>2, c<<6|d
		at += 4
	}
	// The last quad, if it is incomplete, or the invalid one.
	out = out[at/4*3:]
	var acc uint32
	for i, ch := range src[at:] {
		v := decodeTable[ch]
		if v == notBase64 {
			return at + i
		}
		acc = acc<<6 | uint32(v)
		if i > 0 {
			out[i-1] = byte(acc >> (4 - 2*(i-1)))
		}
	}
	return -1
}
