package voice

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
)

// synthRate is the rate in Hz at which sound is made before it is resampled to the requested
// rate. Its 8 kHz of bandwidth hold everything that speech needs.
const synthRate = 16000

const frameSamples = synthRate * frameMS / 1000

type timbre struct {
	pitch  float64 // Hz
	size   float64 // factor on formant frequencies: above 1 is a shorter vocal tract
	open   float64 // open quotient of the glottis
	tilt   float64 // factor on the tilt corner: below 1 is softer
	breath float64 // noise added to voicing
	lively float64 // factor on pitch movements
}

// tract is a vocal tract: the cascade of formants for voice and breath and the
// parallel bands for frication, the arrangement of Klatt (1980). It is used by one Speak.
type tract struct {
	tb       timbre
	glottis  glottis
	rnd      prng
	nose     [len(nosePoles)]resonator
	noseZero antiresonator
	lastHum  float64
	low      [3]resonator // the formants that move
	high     []resonator  // the formants that stay fixed
	bands    [noiseBands]bandpass
	gains    [noiseBands]float64
	bypass   float64
	scale    [noiseKinds]float64
	dc       dcBlock
	prev     frame
}

// Factors that scale the sources to level 1 for a stressed open vowel.
const (
	voiceGain  = 1.0
	breathGain = 0.5
	noseGain   = 0.4
)

// nosePoles are the resonances of the nose and throat while the mouth is closed,
// frequency and bandwidth in Hz (after O. Fujimura, 1962, "Analysis of nasal consonants").
var nosePoles = [...][2]float64{{280, 150}, {1750, 220}, {2500, 300}, {3400, 300}, {4300, 350}}

func newTract(tb timbre) *tract {
	t := &tract{tb: tb, rnd: 0x9E3779B97F4A7C15}
	t.glottis = glottis{rate: synthRate, open: tb.open}
	for i, p := range nosePoles {
		t.nose[i].tune(p[0]*tb.size, p[1], synthRate)
	}
	for f := 3350.0; f*tb.size < synthRate/2-200; f += 1000 {
		var r resonator
		r.tune(f*tb.size, 130+0.04*f, synthRate)
		t.high = append(t.high, r)
	}
	for k := range noiseTable {
		t.scale[k] = noiseScale(&noiseTable[k])
	}
	t.dc.tune(25, synthRate)
	t.prev = frame{f: neutral, bw: formants{60, 90, 150}, noseZero: 1250, nosePole: 1750, tilt: modalTilt}
	return t
}

func noiseScale(s *noiseSpectrum) float64 {
	power := db(s.bypass) * db(s.bypass)
	for _, b := range s.bands {
		power += db(b.level) * db(b.level)
	}
	return 1 / math.Sqrt(power)
}

// run appends the sound of one frame to out. Amplitudes and pitch change linearly from those of the previous frame.
func (t *tract) run(fr *frame, out []float64) []float64 {
	t.shape(fr)
	p := &t.prev
	const n = float64(frameSamples)
	av, ah, af, f0, nose := p.av, p.ah, p.af, p.f0, p.nose
	if f0 == 0 {
		f0 = fr.f0
	}
	dv, dh, df, d0, dn := (fr.av-av)/n, (fr.ah-ah)/n, (fr.af-af)/n, (fr.f0-f0)/n, (fr.nose-nose)/n
	for range int(frameSamples) {
		av, ah, af, f0, nose = av+dv, ah+dh, af+df, f0+d0, nose+dn
		out = append(out, t.dc.step(t.sample(av, ah, af, f0, nose)))
	}
	t.prev = *fr
	return out
}

func (t *tract) shape(fr *frame) {
	for j := range t.low {
		t.low[j].tune(fr.f[j]*t.tb.size, fr.bw[j], synthRate)
	}
	if fr.nose > 0 && fr.noseZero > 0 {
		t.noseZero.tune(fr.noseZero*t.tb.size, 250, synthRate)
		t.nose[1].tune(fr.nosePole*t.tb.size, 220, synthRate)
	}
	t.glottis.tilt.tune(fr.tilt*t.tb.tilt, synthRate)
	if fr.noise == noNoise {
		return
	}
	s := &noiseTable[fr.noise]
	for j, b := range s.bands {
		freq := b.freq
		if b.follow > 0 {
			freq = fr.f[b.follow-1]
		}
		t.bands[j].tune(min(freq*t.tb.size, synthRate/2-400), b.width, synthRate)
		t.gains[j] = db(b.level) * t.scale[fr.noise]
		if j%2 == 1 {
			t.gains[j] = -t.gains[j]
		}
	}
	t.bypass = db(s.bypass) * t.scale[fr.noise]
}

func (t *tract) sample(av, ah, af, f0, nose float64) float64 {
	pulse, open := t.glottis.step(f0)
	noise := t.rnd.next()
	// Breath passes freely while the folds are open.
	breath := noise * (ah + av*t.tb.breath*open)
	y := pulse*av*voiceGain + breath*breathGain
	hum := y
	for j := range t.low {
		y = t.low[j].step(y)
	}
	for j := range t.high {
		y = t.high[j].step(y)
	}
	// The nose is always driven, so that it does not start from rest.
	hum, t.lastHum = (hum-0.4*t.lastHum)/0.6, hum
	hum = t.noseZero.step(hum)
	for j := range t.nose {
		hum = t.nose[j].step(hum)
	}
	y += nose * (noseGain*hum - 0.9*y)
	if af > 0 {
		hiss := noise * af * (1 - 0.5*min(1, 4*av)*(1-open))
		s := hiss * t.bypass
		for j := range t.bands {
			s += t.bands[j].step(hiss) * t.gains[j]
		}
		y += s
	}
	return y
}

// dcBlock removes frequencies below its corner.
type dcBlock struct {
	r, x, y float64
}

func (d *dcBlock) tune(corner, rate float64) { d.r = 1 - 2*math.Pi*corner/rate }

func (d *dcBlock) step(x float64) float64 {
	d.y = x - d.x + d.r*d.y
	d.x = x
	return d.y
}

// sound is a phone of a word and, for a vowel, its stress: 0 none, 1 primary, 2 secondary.
type sound struct {
	ph     phone
	stress uint8
}

// mustSounds reads "HH AX L OW1" from the embedded tables; a test loads them all.
func mustSounds(s string) []sound {
	var out []sound
	for _, f := range strings.Fields(s) {
		name := strings.TrimRight(f, "012")
		p := slices.IndexFunc(phoneTable[:], func(info phoneInfo) bool { return info.name == name })
		if p < 0 {
			panic(fmt.Sprintf("voice: %q is not a phone", f))
		}
		next := sound{ph: phone(p)}
		if len(name) < len(f) {
			next.stress = f[len(f)-1] - '0'
		}
		out = append(out, next)
	}
	return out
}

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

// Loudness of an utterance, as fractions of full scale.
const (
	targetRMS = 0.1   // -20 dBFS, over the parts that are not silent
	peak      = 0.707 // -3 dBFS: nothing is louder
	knee      = 0.5   // above it the limiter compresses the wave
)

func toPCM(samples []float64) []byte {
	gain := 0.0
	if rms := activeRMS(samples); rms > 0 {
		gain = targetRMS / rms
	}
	pcm := make([]byte, 0, 2*len(samples))
	for _, x := range samples {
		v := int16(math.Round(limit(x*gain) * 32767))
		pcm = binary.LittleEndian.AppendUint16(pcm, uint16(v))
	}
	return pcm
}

// activeRMS is the root mean square over blocks that contain sound: those within 30 dB of the loudest.
func activeRMS(samples []float64) float64 {
	const block = 512
	loudest := 0.0
	var powers []float64
	for i := 0; i < len(samples); i += block {
		b := samples[i:min(i+block, len(samples))]
		p := 0.0
		for _, x := range b {
			p += x * x
		}
		p /= float64(len(b))
		powers = append(powers, p)
		loudest = max(loudest, p)
	}
	sum, n := 0.0, 0
	for _, p := range powers {
		if p > loudest/1000 {
			sum += p
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return math.Sqrt(sum / float64(n))
}

// limit keeps x within the peak; it compresses values above the knee without audible distortion.
func limit(x float64) float64 {
	a := math.Abs(x)
	if a <= knee {
		return x
	}
	const room = peak - knee
	a = knee + room*math.Tanh((a-knee)/room)
	return math.Copysign(a, x)
}
