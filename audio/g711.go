package audio

import "slices"

// G.711 carries one sample in one byte, on a logarithmic scale of 8 segments of 16 steps each (ITU-T Recommendation
// G.711, 11/1988, tables 1 and 2). It is usually used at 8000 Hz, but nothing here depends on the rate.
const (
	ulawBias = 0x84  // added so that each segment is one power of two
	ulawClip = 32635 // the largest magnitude that does not overflow with the bias
)

// AppendULaw appends pcm as G.711 mu-law, one byte a sample, without a half sample at its end.
func AppendULaw(dst, pcm []byte) []byte {
	dst = slices.Grow(dst, len(pcm)/BytesPerSample)
	for i := 0; i+1 < len(pcm); i += BytesPerSample {
		dst = append(dst, encodeULaw(sampleAt(pcm, i)))
	}
	return dst
}

// AppendFromULaw appends G.711 mu-law as PCM. dst's free capacity and ulaw must not overlap.
func AppendFromULaw(dst, ulaw []byte) []byte {
	dst = slices.Grow(dst, len(ulaw)*BytesPerSample)
	for _, b := range ulaw {
		dst = appendSample(dst, fromULaw[b])
	}
	return dst
}

// AppendALaw appends pcm as G.711 A-law, one byte a sample, without a half sample at its end.
func AppendALaw(dst, pcm []byte) []byte {
	dst = slices.Grow(dst, len(pcm)/BytesPerSample)
	for i := 0; i+1 < len(pcm); i += BytesPerSample {
		dst = append(dst, encodeALaw(sampleAt(pcm, i)))
	}
	return dst
}

// AppendFromALaw appends G.711 A-law as PCM. dst's free capacity and alaw must not overlap.
func AppendFromALaw(dst, alaw []byte) []byte {
	dst = slices.Grow(dst, len(alaw)*BytesPerSample)
	for _, b := range alaw {
		dst = appendSample(dst, fromALaw[b])
	}
	return dst
}

// fromULaw and fromALaw are the decoder's 256 output values.
var fromULaw, fromALaw = func() (u, a [256]int16) {
	for i := range u {
		u[i] = decodeULaw(byte(i))
		a[i] = decodeALaw(byte(i))
	}
	return u, a
}()

// encodeULaw returns the complement of sign, segment and step, as G.711 sends it.
func encodeULaw(s int16) byte {
	v, sign := int32(s), byte(0)
	if v < 0 {
		v, sign = -v, 0x80
	}
	v = min(v, ulawClip) + ulawBias
	segment := 7
	for mask := int32(0x4000); v&mask == 0 && segment > 0; mask >>= 1 {
		segment--
	}
	step := byte(v>>(segment+3)) & 0x0F
	return ^(sign | byte(segment)<<4 | step)
}

func decodeULaw(b byte) int16 {
	b = ^b
	v := (int32(b&0x0F)<<3+ulawBias)<<(b>>4&7) - ulawBias
	if b&0x80 != 0 {
		v = -v
	}
	return int16(v)
}

// alawMask inverts every second bit of the transmitted byte (G.711 section 3.2).
const alawMask = 0x55

// Negative values are complemented, not negated, so that -1 is the smallest negative value.
func encodeALaw(s int16) byte {
	v, sign := int32(s)>>4, byte(0x80)
	if v < 0 {
		v, sign = ^v, 0
	}
	// v has 11 bits: the first 32 steps have the same width, and each segment above is twice as coarse.
	segment := 0
	for v > 0x1F {
		v >>= 1
		segment++
	}
	if v >= 0x10 {
		segment++
	}
	return (sign | byte(segment)<<4 | byte(v)&0x0F) ^ alawMask
}

func decodeALaw(b byte) int16 {
	b ^= alawMask
	v := int32(b&0x0F)<<4 + 8
	if segment := b >> 4 & 7; segment > 0 {
		v = (v + 0x100) << (segment - 1)
	}
	if b&0x80 == 0 {
		v = -v
	}
	return int16(v)
}
