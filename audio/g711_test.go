package audio_test

import (
	"math"
	"testing"
	"time"

	"voicegw/audio"
	"voicegw/internal/testutil"
)

// g711 is one of the two laws.
type g711 struct {
	name           string
	encode, decode func(dst, src []byte) []byte
}

var (
	ulaw = g711{"mu-law", audio.AppendULaw, audio.AppendFromULaw}
	alaw = g711{"A-law", audio.AppendALaw, audio.AppendFromALaw}
)

func (g g711) code(s int) byte    { return g.encode(nil, pcm16(s))[0] }
func (g g711) value(b byte) int   { return sample(g.decode(nil, []byte{b}), 0) }
func pcm16(samples ...int) []byte { return appendAll(nil, samples) }

func appendAll(dst []byte, samples []int) []byte {
	for _, s := range samples {
		dst = append(dst, byte(s), byte(uint16(s)>>8))
	}
	return dst
}

// TestG711ReferenceValues: the decoder output values of G.711, tables 1 and 2. The tables count in 13 and 14 bits; a
// 16-bit sample is 8 and 4 times as large.
func TestG711ReferenceValues(t *testing.T) {
	for _, c := range []struct {
		law   g711
		code  byte
		value int
	}{
		{ulaw, 0xFF, 0}, {ulaw, 0x7F, 0}, {ulaw, 0xFE, 4 * 2}, {ulaw, 0xF0, 4 * 30}, {ulaw, 0xEF, 4 * 33}, {ulaw, 0xE0, 4 * 93},
		{ulaw, 0xDF, 4 * 99}, {ulaw, 0xCF, 4 * 231}, {ulaw, 0xBF, 4 * 495}, {ulaw, 0xAF, 4 * 1023}, {ulaw, 0x9F, 4 * 2079},
		{ulaw, 0x8F, 4 * 4191}, {ulaw, 0x80, 4 * 8031}, {ulaw, 0x00, -4 * 8031}, {ulaw, 0x7E, -4 * 2}, {ulaw, 0x0F, -4 * 4191},
		{alaw, 0xD5, 8 * 1}, {alaw, 0x55, -8 * 1}, {alaw, 0xD4, 8 * 3}, {alaw, 0xDA, 8 * 31}, {alaw, 0xC5, 8 * 33}, {alaw, 0xF5, 8 * 66},
		{alaw, 0xE5, 8 * 132}, {alaw, 0x95, 8 * 264}, {alaw, 0x85, 8 * 528}, {alaw, 0xB5, 8 * 1056}, {alaw, 0xA5, 8 * 2112},
		{alaw, 0xAA, 8 * 4032}, {alaw, 0x2A, -8 * 4032}, {alaw, 0x25, -8 * 2112},
	} {
		if got := c.law.value(c.code); got != c.value {
			t.Errorf("%s 0x%02X decodes to %d, want %d", c.law.name, c.code, got, c.value)
		}
		if c.code == 0x7F { // minus zero: zero is sent as 0xFF
			continue
		}
		if got := c.law.code(c.value); got != c.code {
			t.Errorf("%s: %d encodes to 0x%02X, want 0x%02X", c.law.name, c.value, got, c.code)
		}
	}
}

// TestG711StaysWithinHalfAStep: the decision values of both tables are half a step around each value, so no sample may be
// further from its value than that, except those above the last decision value. (The values at the boundary of two
// segments are not in the middle: the nearest value is not always the right one.)
func TestG711StaysWithinHalfAStep(t *testing.T) {
	for law, largest := range map[*g711]int{&ulaw: 4 * 8031, &alaw: 8 * 4032} {
		for s := math.MinInt16; s <= math.MaxInt16; s++ {
			code := law.code(s)
			got := law.value(code)
			// The code with the last bit flipped is one step away.
			step := abs(law.value(code^1) - got)
			if off := abs(got - s); off > step/2 && (abs(s) < largest || abs(got) != largest) {
				t.Fatalf("%s: %d becomes %d, further than half of its step of %d", law.name, s, got, step)
			}
			if got*s < 0 {
				t.Fatalf("%s: %d becomes %d and changes its sign", law.name, s, got)
			}
		}
		for i := range 256 {
			if again := law.code(law.value(byte(i))); again != byte(i) && law.value(again) != 0 {
				t.Errorf("%s: 0x%02X decodes and encodes to 0x%02X", law.name, i, again)
			}
		}
	}
}

// TestG711SignalToNoise: G.711 is specified to give about 37 dB for a sine over a wide range.
func TestG711SignalToNoise(t *testing.T) {
	for _, law := range []g711{ulaw, alaw} {
		for _, level := range []float64{-3, -10, -20, -30} {
			got := law.decode(nil, law.encode(nil, testutil.Tone(8000, 1020, level, time.Second)))
			if snr := snrOf(got, 8000, 1020); snr < 35 {
				t.Errorf("%s: a tone of %v dBFS has an SNR of %.1f dB, want 35", law.name, level, snr)
			}
		}
	}
}

func TestG711Appends(t *testing.T) {
	for _, law := range []g711{ulaw, alaw} {
		pcm := testutil.Noise(8000, -10, 20*time.Millisecond, 1)
		coded := law.encode([]byte{1, 2}, append(pcm, 9)) // and half a sample
		if len(coded) != 2+160 || coded[0] != 1 || coded[1] != 2 {
			t.Errorf("%s: %d bytes, want the 2 before and 160", law.name, len(coded))
		}
		back := make([]byte, 0, len(pcm))
		if n := testing.AllocsPerRun(100, func() {
			coded = law.encode(coded[:0], pcm)
			back = law.decode(back[:0], coded)
		}); n != 0 {
			t.Errorf("%s: %v allocations", law.name, n)
		}
	}
}

func BenchmarkG711(b *testing.B) {
	pcm := testutil.Noise(8000, -20, 20*time.Millisecond, 1)
	for _, law := range []g711{ulaw, alaw} {
		b.Run("encode "+law.name, func(b *testing.B) {
			var out []byte
			b.SetBytes(int64(len(pcm)))
			for b.Loop() {
				out = law.encode(out[:0], pcm)
			}
		})
		b.Run("decode "+law.name, func(b *testing.B) {
			var out []byte
			coded := law.encode(nil, pcm)
			b.SetBytes(int64(len(pcm)))
			for b.Loop() {
				out = law.decode(out[:0], coded)
			}
		})
	}
}
