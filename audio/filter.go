package audio

import (
	"fmt"
	"math"
	"sync"
)

// The low-pass filter of every conversion, relative to the lower of the two rates: flat up to passEdge (3440 Hz of 8
// kHz, the telephone band), stopping from stopEdge on, which is the Nyquist frequency, so that nothing aliases.
const (
	passEdge    = 0.43
	stopEdge    = 0.50
	attenuation = 96.0 // dB, approximately the noise floor of 16-bit samples

	// tapAlign: the number of taps is a multiple of it, as dot requires.
	tapAlign = 8

	// maxTable bounds one filter to 4 MiB. Only pairs of rates with almost no common divisor reach it.
	maxTable = 1 << 20

	minRate = MinRate
	maxRate = MaxRate
)

// filter is the polyphase filter of one pair of rates. It never changes and is shared by all streams with that ratio.
type filter struct {
	up, down int // the rate ratio out:in in lowest terms
	taps     int // of one phase, a multiple of tapAlign
	// table holds up phases of taps coefficients, each in the order of the
	// samples to which it is applied. The centre of phase 0 is tap taps/2-1.
	table []float32
}

func (f *filter) phase(i int) []float32 {
	return f.table[i*f.taps : (i+1)*f.taps]
}

// newFilter designs a windowed sinc with a Kaiser window. The length and beta follow Kaiser's formulas (J. F. Kaiser,
// "Nonrecursive digital filter design using the I0-sinh window function", 1974).
func newFilter(up, down int) (*filter, error) {
	// All frequencies are in cycles per input sample.
	lower := min(1, float64(up)/float64(down))
	width := (stopEdge - passEdge) * lower
	cutoff := (stopEdge + passEdge) / 2 * lower
	beta := 0.1102 * (attenuation - 8.7)
	taps := int(math.Ceil((attenuation-7.95)/(2.285*2*math.Pi*width))) + 1
	taps = (taps + tapAlign - 1) / tapAlign * tapAlign
	if up > maxTable/taps {
		return nil, fmt.Errorf("%w: the ratio %d:%d needs %d filter phases of %d taps, at most %d coefficients are allowed",
			ErrRate, up, down, up, taps, maxTable)
	}

	f := &filter{up: up, down: down, taps: taps, table: make([]float32, up*taps)}
	half := float64(taps) / 2
	row := make([]float64, taps)
	for p := range up {
		sum := 0.0
		for k := range row {
			// How far this tap's sample is from the output's instant.
			at := float64(k-(taps/2-1)) - float64(p)/float64(up)
			row[k] = 2 * cutoff * sinc(2*cutoff*at) * kaiser(at/half, beta)
			sum += row[k]
		}
		// Every phase passes a constant unchanged, so that the phases do not modulate it.
		for k, v := range row {
			f.table[p*taps+k] = float32(v / sum)
		}
	}
	return f, nil
}

// sinc returns sin(pi x)/(pi x).
func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(math.Pi*x) / (math.Pi * x)
}

// kaiser returns the Kaiser window for x from -1 to 1.
func kaiser(x, beta float64) float64 {
	if x < -1 || x > 1 {
		return 0
	}
	return bessel0(beta*math.Sqrt(1-x*x)) / bessel0(beta)
}

// bessel0 returns the modified Bessel function of the first kind and order zero.
func bessel0(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; term > 1e-17*sum; k++ {
		term *= x / (2 * k) * (x / (2 * k))
		sum += term
	}
	return sum
}

// maxFilters bounds the cache: only files have other rates than clients and providers, and compute theirs each time.
const maxFilters = 64

// filters caches the filters by ratio: a filter may take a megabyte.
var filters = filterCache{entries: map[ratio]*filterEntry{}}

type ratio struct{ up, down int }

type filterEntry struct {
	once   sync.Once
	filter *filter
	err    error
}

type filterCache struct {
	mu      sync.Mutex // guards entries, not what they hold
	entries map[ratio]*filterEntry
}

// The first caller designs the filter of a ratio in lowest terms; concurrent ones wait.
func (c *filterCache) get(up, down int) (*filter, error) {
	e := c.entry(ratio{up, down})
	e.once.Do(func() { e.filter, e.err = newFilter(up, down) })
	return e.filter, e.err
}

func (c *filterCache) entry(key ratio) *filterEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[key]
	if e == nil {
		e = &filterEntry{}
		if len(c.entries) < maxFilters {
			c.entries[key] = e
		}
	}
	return e
}

// dotGo multiplies vectors of the same length, a multiple of tapAlign. The explicit conversions keep the compiler from
// fusing multiply and add, so that every platform computes the same bits.
func dotGo(c, x []float32) float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	x = x[:len(c)]
	for len(c) >= tapAlign && len(x) >= tapAlign {
		s0 += float32(c[0] * x[0])
		s1 += float32(c[1] * x[1])
		s2 += float32(c[2] * x[2])
		s3 += float32(c[3] * x[3])
		s4 += float32(c[4] * x[4])
		s5 += float32(c[5] * x[5])
		s6 += float32(c[6] * x[6])
		s7 += float32(c[7] * x[7])
		c, x = c[tapAlign:], x[tapAlign:]
	}
	s0, s1, s2, s3 = s0+s4, s1+s5, s2+s6, s3+s7
	return (s0 + s2) + (s1 + s3)
}

// four describes four samples at once: out[i] is the rounded product of c[i] and x[i], of one length, a multiple of
// tapAlign. Vector code has four sums to work on while it waits for an adder.
type four struct {
	c, x [4][]float32
	out  [4]int16
}

func (f *four) samplesGo() {
	for i := range f.out {
		f.out[i] = round16(dot(f.c[i], f.x[i]))
	}
}

// round16 rounds halves to the even sample and clips at full scale. v must be far inside the range of an int32.
func round16(v float32) int16 {
	return int16(min(max(int32(math.RoundToEven(float64(v))), math.MinInt16), math.MaxInt16))
}
