package voice

import "math"

// prng is a small deterministic generator of noise (xorshift64*).
type prng uint64

// next returns noise with mean 0 and variance 1, the sum of four uniform numbers: close enough to Gaussian for the ear.
func (p *prng) next() float64 {
	x := uint64(*p)
	x ^= x >> 12
	x ^= x << 25
	x ^= x >> 27
	*p = prng(x)
	x *= 0x2545F4914F6CDD1D
	s := int32(x&0xffff) + int32(x>>16&0xffff) + int32(x>>32&0xffff) + int32(x>>48&0xffff)
	return float64(s-2*0xffff) * (1 / 37837.2) // standard deviation of the sum
}

// glottis is the voice source: the derivative of the air flow through the vocal folds, after the KLGLOTT88 model (D. H.
// Klatt and L. C. Klatt, 1990, "Analysis, synthesis, and perception of voice quality variations"). While the folds are
// open the flow is a·t²-b·t³; closing is abrupt, and a low-pass filter, the tilt, rounds it.
type glottis struct {
	rate  float64
	phase float64 // position in the period, 0 to 1
	open  float64 // open quotient
	tilt  lowpass
	taps  [oversample * 2]float64
}

// oversample is how many points of the pulse are averaged for one sample, to
// keep the corner of the closure from folding back as roughness.
const oversample = 4

// step advances one sample at f0 Hz. It returns the source and how open the folds are (0 or 1).
func (g *glottis) step(f0 float64) (float64, float64) {
	inc := f0 / (g.rate * oversample)
	copy(g.taps[:oversample], g.taps[oversample:])
	for i := range oversample {
		g.phase += inc
		if g.phase >= 1 {
			g.phase--
		}
		g.taps[oversample+i] = g.pulse()
	}
	// A triangle over two samples.
	var s float64
	for i, w := range triangle {
		s += w * g.taps[i]
	}
	breath := 0.0
	if g.phase < g.open {
		breath = 1
	}
	return g.tilt.step(s), breath
}

// triangle sums to 1.
var triangle = [oversample * 2]float64{1. / 32, 3. / 32, 5. / 32, 7. / 32, 7. / 32, 5. / 32, 3. / 32, 1. / 32}

// pulse is the flow derivative at the current phase, with a power that does not depend
// on the pitch. Its mean over a period is 0.
func (g *glottis) pulse() float64 {
	if g.phase >= g.open {
		return 0
	}
	x := g.phase / g.open
	return 2*x - 3*x*x
}

func db(x float64) float64 {
	return math.Exp(x * (math.Ln10 / 20))
}
