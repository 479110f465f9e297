package audio

import "math"

// frameMeter measures the frames of a Detector: their level without rumble and
// hum, and on demand whether a voice's pitch is in them.
type frameMeter struct {
	// Fixed after reset.
	highPass [2]biquad
	frame    int
	decimate int // input samples for one of slow

	count  int     // samples of the running frame so far
	energy float64 // of them

	// slow is the sound at about 4 kHz, which is enough for pitch and the first
	// formant: the last slowLen samples, at least pitchSpan, newest last.
	slow      [4 * pitchSpan]float64
	slowLen   int
	slowSum   float64
	slowCount int
}

const (
	// highPassHz keeps 50 and 60 Hz hum, its strongest harmonic and the thump
	// of a knock out; a voice's harmonics pass.
	highPassHz = 200.0

	slowRate = 4000
	// A pitch of 70 to 500 Hz is looked for over 20 ms.
	pitchWindow = slowRate / 50
	minLag      = slowRate / 500
	maxLag      = slowRate / 70
	pitchSpan   = pitchWindow + maxLag
	// pitchMatch is how alike two periods are, as a correlation: 0.3 and less
	// for noise, 0.8 and more for a voice.
	pitchMatch = 0.55
)

func (m *frameMeter) reset(rate, frame int) {
	*m = frameMeter{frame: frame, decimate: (rate + slowRate/2) / slowRate, slowLen: pitchSpan}
	// A Butterworth filter of fourth order, as two sections.
	m.highPass = [2]biquad{newHighPass(rate, highPassHz, 0.5412), newHighPass(rate, highPassHz, 1.3066)}
}

// add takes samples of the running frame, at most what is left of it.
func (m *frameMeter) add(pcm []byte) {
	// What each sample changes is kept in registers: by way of memory, a sample would wait
	// for the one before to be written.
	first, second := &m.highPass[0], &m.highPass[1]
	a1, a2, b1, b2 := first.z1, first.z2, second.z1, second.z2
	energy, sum := m.energy, m.slowSum
	for i := 0; i+1 < len(pcm); i += BytesPerSample {
		v := float64(sampleAt(pcm, i)) * (1.0 / 32768)
		v, a1, a2 = first.next(v, a1, a2)
		v, b1, b2 = second.next(v, b1, b2)
		energy += v * v
		sum += v
		if m.slowCount++; m.slowCount == m.decimate {
			m.pushSlow(sum)
			sum = 0
		}
	}
	first.z1, first.z2, second.z1, second.z2 = a1, a2, b1, b2
	m.energy, m.slowSum = energy, sum
	m.count += len(pcm) / BytesPerSample
}

func (m *frameMeter) pushSlow(sum float64) {
	if m.slowLen == len(m.slow) {
		m.slowLen = copy(m.slow[:], m.slow[len(m.slow)-pitchSpan:])
	}
	m.slow[m.slowLen] = sum / float64(m.decimate)
	m.slowLen++
	m.slowCount = 0
}

// close ends the running frame and returns its level in dB.
func (m *frameMeter) close() float64 {
	level := decibel(m.energy / float64(m.frame))
	m.energy, m.count = 0, 0
	for i := range m.highPass {
		m.highPass[i].settle()
	}
	return level
}

// pitched tells whether the sound up to now repeats itself as a voice does.
func (m *frameMeter) pitched() bool {
	span := m.slow[m.slowLen-pitchSpan : m.slowLen]
	now := span[maxLag:]
	power := dot64(now, now)
	if power == 0 {
		return false
	}
	// The energy of the window at each lag follows from the one before.
	from := maxLag - minLag
	past := dot64(span[from:from+pitchWindow], span[from:from+pitchWindow])
	for lag := minLag; lag <= maxLag; lag++ {
		from = maxLag - lag
		then := span[from : from+pitchWindow]
		if past > 0 && dot64(now, then) > pitchMatch*math.Sqrt(power*past) {
			return true
		}
		if from > 0 {
			in, out := span[from-1], then[pitchWindow-1]
			past += in*in - out*out
		}
	}
	return false
}

func dot64(a, b []float64) float64 {
	var s0, s1 float64
	b = b[:len(a)]
	for i := 0; i+1 < len(a); i += 2 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
	}
	return s0 + s1
}

// biquad is a second order filter in transposed direct form II.
type biquad struct {
	b0, b1, b2, a1, a2 float64
	z1, z2             float64
}

// newHighPass designs a high-pass by the bilinear transform (R. Bristow-Johnson,
// "Cookbook formulae for audio EQ biquad filter coefficients").
func newHighPass(rate int, hz, q float64) biquad {
	sin, cos := math.Sincos(2 * math.Pi * hz / float64(rate))
	alpha := sin / (2 * q)
	a0 := 1 + alpha
	return biquad{
		b0: (1 + cos) / 2 / a0, b1: -(1 + cos) / a0, b2: (1 + cos) / 2 / a0,
		a1: -2 * cos / a0, a2: (1 - alpha) / a0,
	}
}

// next filters one sample. The state goes in and out; what does not need out is added up
// first, for out is what the next sample waits for.
func (f *biquad) next(v, z1, z2 float64) (out, nextZ1, nextZ2 float64) {
	out = f.b0*v + z1
	return out, (f.b1*v + z2) - f.a1*out, f.b2*v - f.a2*out
}

// settle ends what rings on in digital silence, before it gets so small that
// the processor becomes slow with it.
func (f *biquad) settle() {
	if math.Abs(f.z1)+math.Abs(f.z2) < 1e-20 {
		f.z1, f.z2 = 0, 0
	}
}
