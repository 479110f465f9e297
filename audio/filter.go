package audio

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
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
var filters = filterCache{entries: map[ratio]func() (*filter, error){}}

type ratio struct{ up, down int }

type filterCache struct {
	mu      sync.Mutex // guards the map, not its values
	entries map[ratio]func() (*filter, error)
}

// entry returns the design of a ratio in lowest terms. Its first caller makes the filter; concurrent ones wait.
func (c *filterCache) entry(key ratio) func() (*filter, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	design := c.entries[key]
	if design == nil {
		design = sync.OnceValues(func() (*filter, error) { return newFilter(key.up, key.down) })
		if len(c.entries) < maxFilters {
			c.entries[key] = design
		}
	}
	return design
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

// blockSamples is how many input samples a Resampler processes at once: 20 ms at 48 kHz.
const blockSamples = 960

// Resampler converts one stream of PCM from one rate to another.
//
// Output is aligned with the input: output sample n is the input at the time n/outRate, and a stream of n samples
// becomes ceil(n*outRate/inRate) once it is flushed. Because the filter looks ahead, Process withholds the last Latency
// of the input until more follows or Flush is called. How the input is split into calls makes no difference to the
// output.
//
// A Resampler belongs to one goroutine at a time. The filter's coefficients
// are shared by all Resamplers with the same ratio.
type Resampler struct {
	// Fixed after NewResampler.
	inRate, outRate int
	filter          *filter // nil if the rates are equal

	// Owned by the caller of Process.
	buf   []float32 // samples not yet used up, the oldest first
	pos   int       // index in buf of the next output's first tap
	phase int       // the phase of the next output
	owed  int64     // the length of the stream so far, in output samples times filter.down
}

// NewResampler returns a Resampler from inRate to outRate, 8000 to 192000 Hz. The error is ErrRate, also if no filter
// of reasonable size converts between them (all usual rates are supported).
func NewResampler(inRate, outRate int) (*Resampler, error) {
	for _, rate := range []int{inRate, outRate} {
		if rate < MinRate || rate > MaxRate {
			return nil, fmt.Errorf("%w: %d Hz to %d Hz: rates from %d to %d Hz are supported", ErrRate, inRate, outRate, MinRate, MaxRate)
		}
	}
	r := &Resampler{inRate: inRate, outRate: outRate}
	if inRate == outRate {
		return r, nil
	}
	d := gcd(inRate, outRate)
	f, err := filters.entry(ratio{outRate / d, inRate / d})()
	if err != nil {
		return nil, fmt.Errorf("resample %d Hz to %d Hz: %w", inRate, outRate, err)
	}
	r.filter = f
	r.buf = make([]float32, 0, f.taps+f.down/f.up+1+blockSamples)
	r.Reset()
	return r, nil
}

// Reset forgets the stream. The next Process starts a new one.
func (r *Resampler) Reset() {
	if r.filter == nil {
		return
	}
	// The first output is centred on the first sample; silence precedes it.
	r.buf = r.buf[:r.filter.taps/2-1]
	clear(r.buf)
	r.pos, r.phase, r.owed = 0, 0, 0
}

// Latency returns how much of the input Process withholds. It is zero if the rates are equal.
func (r *Resampler) Latency() time.Duration {
	if r.filter == nil {
		return 0
	}
	return Duration(r.inRate, r.filter.taps/2*BytesPerSample)
}

// MaxOut returns the maximum number of bytes that one Process of n bytes and a Flush after it append together.
func (r *Resampler) MaxOut(n int) int {
	samples := max(n, 0) / BytesPerSample
	if r.filter == nil {
		return samples * BytesPerSample
	}
	held := r.filter.taps/2 + 1
	out := int64(samples+held) * int64(r.filter.up) / int64(r.filter.down)
	return int(out+1) * BytesPerSample
}

// Process appends src, without a half sample, at the output rate to dst. It allocates nothing if dst has
// MaxOut(len(src)) bytes of free capacity, which must not overlap src.
func (r *Resampler) Process(dst, src []byte) []byte {
	src = src[:len(src)&^1]
	if r.filter == nil {
		return append(dst, src...)
	}
	r.owed += int64(len(src)/BytesPerSample) * int64(r.filter.up)
	dst = slices.Grow(dst, r.MaxOut(len(src)))
	for len(src) > 0 {
		n := min(len(src)/BytesPerSample, r.room())
		at := len(r.buf)
		r.buf = r.buf[:at+n]
		for i := range n {
			r.buf[at+i] = float32(sampleAt(src, i*BytesPerSample))
		}
		src = src[n*BytesPerSample:]
		dst = r.filterInto(dst, len(r.buf))
	}
	return dst
}

// Flush appends what Process has withheld, as if silence followed, and resets the Resampler.
func (r *Resampler) Flush(dst []byte) []byte {
	if r.filter == nil {
		return dst
	}
	dst = slices.Grow(dst, r.MaxOut(0))
	for r.owed > 0 {
		n := min(r.room(), r.filter.taps/2+1) // before len: it moves the rest to the front
		at := len(r.buf)
		r.buf = r.buf[:at+n]
		clear(r.buf[at:])
		dst = r.filterInto(dst, len(r.buf))
	}
	r.Reset()
	return dst
}

// room drops samples that no output needs any more and returns how many samples fit after the rest.
func (r *Resampler) room() int {
	if used := min(r.pos, len(r.buf)); used > 0 {
		r.buf = r.buf[:copy(r.buf, r.buf[used:])]
		r.pos -= used
	}
	return cap(r.buf) - len(r.buf)
}

// filterInto appends every output whose taps are within the first n samples of buf and the length of the stream.
func (r *Resampler) filterInto(dst []byte, n int) []byte {
	f := r.filter
	whole, part := f.down/f.up, f.down%f.up
	pos, phase, owed := r.pos, r.phase, r.owed
	var batch four
	for last := 3 * f.down; pos+(phase+last)/f.up+f.taps <= n && owed > int64(last); owed -= int64(4 * f.down) {
		for i := range batch.out {
			batch.c[i], batch.x[i] = f.phase(phase), r.buf[pos:pos+f.taps]
			pos += whole
			if phase += part; phase >= f.up {
				phase -= f.up
				pos++
			}
		}
		batch.samples()
		for _, s := range batch.out {
			dst = appendSample(dst, s)
		}
	}
	for pos+f.taps <= n && owed > 0 {
		v := dot(f.phase(phase), r.buf[pos:pos+f.taps])
		dst = appendSample(dst, round16(v))
		owed -= int64(f.down)
		pos += whole
		if phase += part; phase >= f.up {
			phase -= f.up
			pos++
		}
	}
	r.pos, r.phase, r.owed = pos, phase, owed
	return dst
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
