package voice

import "math"

// synthRate is the rate in Hz at which sound is made; it is resampled to the rate that is
// asked for. 8 kHz of bandwidth hold everything speech needs.
const synthRate = 16000

const frameSamples = synthRate * frameMS / 1000

// timbre makes one voice differ from another.
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
	nosePole resonator
	noseZero antiresonator
	low      [3]resonator // the formants that move
	high     []resonator  // those that stay
	bands    [noiseBands]bandpass
	gains    [noiseBands]float64
	bypass   float64
	lastHP   float64
	scale    [noiseKinds]float64
	dc       dcBlock
	prev     frame
}

// Factors that bring the sources to level 1 for a stressed open vowel.
const (
	voiceGain  = 1.0
	breathGain = 0.5
)

func newTract(tb timbre) *tract {
	t := &tract{tb: tb, rnd: 0x9E3779B97F4A7C15}
	t.glottis = glottis{rate: synthRate, open: tb.open}
	t.nosePole.tune(noseClosed, 100, synthRate)
	for f := 3350.0; f*tb.size < synthRate/2-200; f += 1000 {
		var r resonator
		r.tune(f*tb.size, 180+0.08*f, synthRate)
		t.high = append(t.high, r)
	}
	for k := range noiseTable {
		t.scale[k] = noiseScale(&noiseTable[k])
	}
	t.dc.tune(25, synthRate)
	t.prev = frame{f: neutral, bw: formants{60, 90, 150}, noseZero: noseClosed, tilt: modalTilt}
	return t
}

// noiseScale returns the factor that gives a spectrum the power of the white
// noise that goes in.
func noiseScale(s *noiseSpectrum) float64 {
	power := db(s.bypass) * db(s.bypass)
	for _, b := range s.bands {
		power += db(b.level) * db(b.level)
	}
	return 1 / math.Sqrt(power)
}

// run appends the sound of one frame to out. Amplitudes and pitch move in a straight
// line from those of the frame before.
func (t *tract) run(fr *frame, out []float64) []float64 {
	t.shape(fr)
	p := &t.prev
	const n = float64(frameSamples)
	av, ah, af, f0 := p.av, p.ah, p.af, p.f0
	if f0 == 0 {
		f0 = fr.f0
	}
	dv, dh, df, d0 := (fr.av-av)/n, (fr.ah-ah)/n, (fr.af-af)/n, (fr.f0-f0)/n
	for range int(frameSamples) {
		av, ah, af, f0 = av+dv, ah+dh, af+df, f0+d0
		out = append(out, t.dc.step(t.sample(av, ah, af, f0)))
	}
	t.prev = *fr
	return out
}

// shape tunes the filters to fr.
func (t *tract) shape(fr *frame) {
	for j := range t.low {
		t.low[j].tune(fr.f[j]*t.tb.size, fr.bw[j], synthRate)
	}
	t.noseZero.tune(fr.noseZero, 100, synthRate)
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

// sample makes one sample.
func (t *tract) sample(av, ah, af, f0 float64) float64 {
	pulse, open := t.glottis.step(f0)
	noise := t.rnd.next()
	// Breath passes freely while the folds are open.
	breath := noise * (ah + av*t.tb.breath*open)
	y := pulse*av*voiceGain + breath*breathGain
	y = t.noseZero.step(t.nosePole.step(y))
	for j := range t.low {
		y = t.low[j].step(y)
	}
	for j := range t.high {
		y = t.high[j].step(y)
	}
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

// dcBlock removes what lies below its corner.
type dcBlock struct {
	r, x, y float64
}

func (d *dcBlock) tune(corner, rate float64) { d.r = 1 - 2*math.Pi*corner/rate }

func (d *dcBlock) step(x float64) float64 {
	d.y = x - d.x + d.r*d.y
	d.x = x
	return d.y
}
