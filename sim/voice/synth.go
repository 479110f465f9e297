package voice

import (
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

// noiseScale returns the factor that gives a spectrum the power of its white noise input.
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
