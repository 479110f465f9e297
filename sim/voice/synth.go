package voice

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
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
	random   *rand.Rand
	nose     [len(nosePoles)]filter
	noseZero filter
	lastHum  float64
	low      [3]filter // the formants that move
	high     []filter  // the formants that stay fixed
	noise    *spectrum // the latest
	bands    [3]filter // of noise
	dc       filter    // removes frequencies below 25 Hz
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
	t := &tract{tb: tb, random: rand.New(rand.NewPCG(1, 1)), glottis: glottis{open: tb.open},
		dc: filter{a0: 1, a1: -1, b1: 1 - 2*math.Pi*25/synthRate}}
	for i, p := range nosePoles {
		t.nose[i].resonate(p[0]*tb.size, p[1])
	}
	for f := 3350.0; f*tb.size < synthRate/2-200; f += 1000 {
		var r filter
		r.resonate(f*tb.size, 130+0.04*f)
		t.high = append(t.high, r)
	}
	t.prev = frame{f: neutral, bw: formants{60, 90, 150}, noseZero: 1250, nosePole: 1750, tilt: modalTilt}
	return t
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
		t.low[j].resonate(fr.f[j]*t.tb.size, fr.bw[j])
	}
	if fr.nose > 0 && fr.noseZero > 0 {
		t.noseZero.absorb(fr.noseZero*t.tb.size, 250)
		t.nose[1].resonate(fr.nosePole*t.tb.size, 220)
	}
	t.glottis.tilt.soften(fr.tilt * t.tb.tilt)
	if fr.noise == nil {
		return
	}
	t.noise = fr.noise
	for j, b := range fr.noise.bands {
		if b.follow > 0 {
			b.freq = fr.f[b.follow-1]
		}
		t.bands[j].pass(min(b.freq*t.tb.size, synthRate/2-400), b.width)
	}
}

func (t *tract) sample(av, ah, af, f0, nose float64) float64 {
	pulse, open := t.glottis.step(f0)
	noise := t.random.NormFloat64()
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
	if af > 0 && t.noise != nil {
		hiss := noise * af * (1 - 0.5*min(1, 4*av)*(1-open))
		s := hiss * t.noise.bypass
		for j := range t.bands {
			s += t.bands[j].step(hiss) * t.noise.bands[j].gain
		}
		y += s
	}
	return y
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
		p := slices.IndexFunc(phoneTable, func(info phoneInfo) bool { return info.name == name })
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

// filter is a digital filter with up to two zeros and two poles. Its methods tune it to a frequency and a bandwidth in
// Hz. They keep its memory, so that they may be called while sound passes through.
type filter struct {
	a0, a1, a2, b1, b2 float64 // factors of the input, and of the previous output
	x1, x2, y1, y2     float64
}

func (f *filter) step(x float64) float64 {
	y := f.a0*x + f.a1*f.x1 + f.a2*f.x2 + f.b1*f.y1 + f.b2*f.y2
	f.x2, f.x1, f.y2, f.y1 = f.x1, x, f.y1, y
	return y
}

// resonate makes two poles with gain 1 at 0 Hz, the building block of the vocal tract in Klatt (1980), section II.
func (f *filter) resonate(freq, bw float64) {
	e := math.Exp(-math.Pi * bw / synthRate)
	f.b2 = -e * e
	f.b1 = 2 * e * math.Cos(2*math.Pi*freq/synthRate)
	f.a0 = 1 - f.b1 - f.b2
}

// absorb makes the inverse of resonate: a dip in the spectrum, as the side branch of the nose does.
func (f *filter) absorb(freq, bw float64) {
	var r filter
	r.resonate(freq, bw)
	f.a0, f.a1, f.a2 = 1/r.a0, -r.b1/r.a0, -r.b2/r.a0
}

// pass lets one band of noise through, with zeros at 0 Hz and at half the rate. White noise of variance 1 leaves it with
// variance 1 times the gain squared.
func (f *filter) pass(freq, bw float64) {
	f.resonate(freq, bw)
	// The filter with peak gain 1, (1-e²)/2·(1-z⁻²)/(1-b/z+e²/z²), is half of 1 minus an all-pass, so its impulse
	// response has the energy (1-e²)/2.
	f.a0 = math.Sqrt((1 + f.b2) / 2)
	f.a2 = -f.a0
}

// soften makes one pole with gain 1 at 0 Hz, which lets frequencies below the corner through.
func (f *filter) soften(corner float64) {
	f.b1 = math.Exp(-2 * math.Pi * corner / synthRate)
	f.a0 = 1 - f.b1
}

// glottis is the voice source: the derivative of the air flow through the vocal folds, after the KLGLOTT88 model (D. H.
// Klatt and L. C. Klatt, 1990, "Analysis, synthesis, and perception of voice quality variations"). While the folds are
// open the flow is a·t²-b·t³; closing is abrupt, and a low-pass filter, the tilt, rounds it.
type glottis struct {
	phase float64 // position in the period, 0 to 1
	open  float64 // open quotient
	tilt  filter
	taps  [oversample * 2]float64
}

// oversample is how many points of the pulse are averaged for one sample, to
// keep the corner of the closure from folding back as roughness.
const oversample = 4

// step advances one sample at f0 Hz. It returns the source and how open the folds are (0 or 1).
func (g *glottis) step(f0 float64) (float64, float64) {
	inc := f0 / (synthRate * oversample)
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
