package voice

import "math"

// resonator is a two-pole filter with gain 1 at 0 Hz, the building block of
// the vocal tract in Klatt (1980), section II.
type resonator struct {
	a, b, c float64
	y1, y2  float64
}

// tune sets centre and bandwidth in Hz. It keeps the filter's memory, so
// that it may be called while sound passes through.
func (r *resonator) tune(freq, bw, rate float64) {
	e := math.Exp(-math.Pi * bw / rate)
	r.c = -e * e
	r.b = 2 * e * math.Cos(2*math.Pi*freq/rate)
	r.a = 1 - r.b - r.c
}

func (r *resonator) step(x float64) float64 {
	y := r.a*x + r.b*r.y1 + r.c*r.y2
	r.y2, r.y1 = r.y1, y
	return y
}

// antiresonator is the inverse of a resonator: it makes a dip in the spectrum, as the side branch of the nose does.
type antiresonator struct {
	a, b, c float64
	x1, x2  float64
}

func (z *antiresonator) tune(freq, bw, rate float64) {
	var r resonator
	r.tune(freq, bw, rate)
	z.a = 1 / r.a
	z.b = -r.b / r.a
	z.c = -r.c / r.a
}

func (z *antiresonator) step(x float64) float64 {
	y := z.a*x + z.b*z.x1 + z.c*z.x2
	z.x2, z.x1 = z.x1, x
	return y
}

// bandpass passes one band of noise, with zeros at 0 Hz and at half the rate.
// White noise of variance 1 leaves it with variance 1 times the gain squared.
type bandpass struct {
	resonator
	x1, x2 float64
}

func (p *bandpass) tune(freq, bw, rate float64) {
	p.resonator.tune(freq, bw, rate)
	// The filter with peak gain 1, (1-e²)/2·(1-z⁻²)/(1-b/z+e²/z²), is half of 1 minus an all-pass, so its impulse
	// response has the energy (1-e²)/2.
	g := (1 + p.c) / 2
	p.a = g / math.Sqrt(g)
}

func (p *bandpass) step(x float64) float64 {
	y := p.resonator.step(x - p.x2)
	p.x2, p.x1 = p.x1, x
	return y
}

// lowpass is a one-pole filter with gain 1 at 0 Hz.
type lowpass struct {
	a, y float64
}

func (l *lowpass) tune(corner, rate float64) {
	l.a = 1 - math.Exp(-2*math.Pi*corner/rate)
}

func (l *lowpass) step(x float64) float64 {
	l.y += l.a * (x - l.y)
	return l.y
}
