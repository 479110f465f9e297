package voice

import "math"

// resampler turns synthRate into another rate with a polyphase low-pass. It is
// read-only after newResampler.
type resampler struct {
	up, down int
	taps     [][]float64 // one filter per phase
}

// half is how many input samples the filter sees on either side.
const half = 12

func newResampler(rate int) *resampler {
	g := gcd(rate, synthRate)
	r := &resampler{up: rate / g, down: synthRate / g}
	if r.up == r.down {
		return r
	}
	// The corner lies just below half of the lower rate.
	cut := 0.94 * math.Min(1, float64(rate)/synthRate)
	r.taps = make([][]float64, r.up)
	for p := range r.taps {
		r.taps[p] = lowpassTaps(float64(p)/float64(r.up), cut)
	}
	return r
}

// lowpassTaps returns a windowed sinc whose centre lies frac of a sample past the
// middle tap; its sum is 1.
func lowpassTaps(frac, cut float64) []float64 {
	h := make([]float64, 2*half)
	sum := 0.0
	for i := range h {
		x := float64(i-half+1) - frac
		w := 0.5 + 0.5*math.Cos(math.Pi*x/half)
		s := cut
		if x != 0 {
			s = math.Sin(math.Pi*cut*x) / (math.Pi * x)
		}
		h[i] = s * w
		sum += h[i]
	}
	for i := range h {
		h[i] /= sum
	}
	return h
}

// run returns in at the new rate: len(in)·rate/synthRate samples.
func (r *resampler) run(in []float64) []float64 {
	if r.up == r.down {
		return in
	}
	out := make([]float64, len(in)*r.up/r.down)
	for i := range out {
		pos := i * r.down
		h := r.taps[pos%r.up]
		first := pos/r.up - half + 1
		s := 0.0
		if first >= 0 && first+2*half <= len(in) {
			for j, x := range in[first : first+2*half] {
				s += h[j] * x
			}
		} else {
			for j := range h {
				if k := first + j; k >= 0 && k < len(in) {
					s += h[j] * in[k]
				}
			}
		}
		out[i] = s
	}
	return out
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
