package audio

import (
	"fmt"
	"slices"
	"time"
)

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
		if rate < minRate || rate > maxRate {
			return nil, fmt.Errorf("%w: %d Hz to %d Hz: rates from %d to %d Hz are supported", ErrRate, inRate, outRate, minRate, maxRate)
		}
	}
	r := &Resampler{inRate: inRate, outRate: outRate}
	if inRate == outRate {
		return r, nil
	}
	d := gcd(inRate, outRate)
	f, err := filters.get(outRate/d, inRate/d)
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
