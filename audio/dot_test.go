package audio

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestDotAgreesWithPortableCode: the audio is the same on every platform: the vector code and the portable code agree bit
// by bit.
func TestDotAgreesWithPortableCode(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for n := 0; n <= 512; n += tapAlign {
		for offset := range 5 { // alignment must not matter
			c, x := make([]float32, n+offset), make([]float32, n+offset)
			for i := range c {
				c[i], x[i] = float32(rng.NormFloat64()), float32(rng.IntN(65536)-32768)
			}
			got, want := dot(c[offset:], x[offset:]), dotGo(c[offset:], x[offset:])
			if math.Float32bits(got) != math.Float32bits(want) {
				t.Fatalf("%d taps at offset %d: %v, portable %v", n, offset, got, want)
			}
		}
	}
}

// TestFourSamplesAgreeWithPortableCode: four samples at once are as four single ones, with vectors of eight and without,
// at full scale and beyond.
func TestFourSamplesAgreeWithPortableCode(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for n := 0; n <= 256; n += tapAlign {
		for offset := range 9 {
			var f four
			for i := range f.out {
				f.c[i], f.x[i] = make([]float32, n+offset)[offset:], make([]float32, n+offset+i)[offset+i:]
				for k := range f.c[i] {
					f.c[i][k], f.x[i][k] = float32(rng.NormFloat64()/8), float32(rng.IntN(65536)-32768)
				}
			}
			f.samples()
			got := f.out
			f.samplesGo()
			for i := range got {
				if want := round16(dotGo(f.c[i], f.x[i])); got[i] != want || f.out[i] != want {
					t.Fatalf("%d taps at offset %d, sample %d: %v and %v, portable %v", n, offset, i, got[i], f.out[i], want)
				}
			}
		}
	}
	// One by one: values between two samples, and values beyond full scale.
	for v, want := range map[float32]int16{
		0.4: 0, 0.5: 0, 1.5: 2, -0.4: 0, -0.5: 0, -1.4: -1, -1.5: -2, 2.5: 2,
		32767.4: 32767, 32768: 32767, 65000: 32767, -32768.4: -32768, -65000: -32768,
	} {
		var f four
		for i := range f.out {
			f.c[i], f.x[i] = make([]float32, tapAlign), make([]float32, tapAlign)
			f.c[i][i], f.x[i][i] = 1, v
		}
		f.samples()
		if got := round16(v); got != want || f.out != [4]int16{want, want, want, want} {
			t.Errorf("%v became %d and %d, want %d", v, got, f.out, want)
		}
	}
}

// TestFilterCacheIsBounded: the cache is limited, whatever rates are requested from outside.
func TestFilterCacheIsBounded(t *testing.T) {
	c := filterCache{entries: map[ratio]func() (*filter, error){}}
	for i := range 3 * maxFilters {
		if _, err := c.entry(ratio{1, i%40 + 2})(); err != nil {
			t.Fatal(err)
		}
		c.entry(ratio{i + 1000, 1})
	}
	if len(c.entries) != maxFilters {
		t.Errorf("the cache has %d entries, want %d", len(c.entries), maxFilters)
	}
	first, _ := c.entry(ratio{1, 2})()
	if again, _ := c.entry(ratio{1, 2})(); again != first {
		t.Error("the same ratio has two filters")
	}
}

func TestFilterPhasesPassAConstant(t *testing.T) {
	for _, r := range []ratio{{1, 3}, {3, 1}, {160, 441}} {
		f, err := newFilter(r.up, r.down)
		if err != nil {
			t.Fatal(err)
		}
		for p := range f.up {
			sum := 0.0
			for _, c := range f.phase(p) {
				sum += float64(c)
			}
			if math.Abs(sum-1) > 1e-6 {
				t.Fatalf("%d:%d phase %d has a gain of %v", r.up, r.down, p, sum)
			}
		}
	}
}

func TestClip16(t *testing.T) {
	for v, want := range map[float64]int16{0.4: 0, 0.5: 1, -0.5: -1, 32767.4: 32767, 1e9: 32767, -32768.6: -32768, math.Inf(-1): -32768} {
		if got := clip16(v); got != want {
			t.Errorf("clip16(%v) = %d, want %d", v, got, want)
		}
	}
	if got := clip16(math.NaN()); got != 0 {
		t.Errorf("NaN became %d", got)
	}
}
