package audio

import (
	"encoding/binary"
	"math"
	"slices"
)

// frameMeter measures the level of frames without rumble and hum, and whether they have the pitch of a voice.
type frameMeter struct {
	// Fixed after reset.
	scale    float64 // turns the energy of a filtered frame into a power relative to full scale
	decimate int     // input samples per sample of slow

	filter highPass

	// slow is the sound at about 4 kHz, at any scale: the last slowLen samples, at least pitchSpan, newest last.
	slow      [2 * pitchSpan]float32
	slowLen   int
	slowSum   float64
	slowCount int

	zeros int // how many frames of digital silence came in a row
}

const (
	// highPassHz removes 50 and 60 Hz hum, its strongest harmonic and the thump of a knock; a voice's harmonics pass.
	highPassHz = 200.0

	slowRate = 4000
	// A pitch of 70 to 500 Hz is searched over 20 ms.
	pitchWindow = slowRate / 50 // a multiple of tapAlign
	minLag      = slowRate / 500
	maxLag      = slowRate / 70
	pitchSpan   = pitchWindow + maxLag
	// pitchMatch is the least correlation of two periods: it is at most 0.3 for noise, and at least 0.8 for a voice.
	pitchMatch = 0.55

	// restFrames of digital silence leave nothing in the filter and in slow.
	restFrames = 2 + pitchSpan*1000/slowRate/frameMS
)

func (m *frameMeter) reset(rate, frame int) {
	*m = frameMeter{decimate: (rate + slowRate/2) / slowRate, slowLen: pitchSpan}
	var gain float64
	m.filter, gain = newHighPass(rate, highPassHz)
	gain /= 32768
	m.scale = gain * gain / float64(frame)
}

// measure processes one frame of PCM and returns its level in dB.
func (m *frameMeter) measure(pcm []byte) float64 {
	if !silent(pcm) {
		m.zeros = 0
	} else if m.zeros++; m.zeros > restFrames {
		return minLevel // as of a muted microphone
	}
	var energy float64
	var filtered [chunkSamples]float64
	for len(pcm) > 0 {
		n := min(len(pcm), len(filtered)*BytesPerSample)
		energy += m.filter.filter(pcm[:n], filtered[:])
		m.slowDown(filtered[:n/BytesPerSample])
		pcm = pcm[n:]
	}
	if energy < 1e-30 {
		// In digital silence, end the filter's ringing before its values get so small that the processor becomes slow.
		m.filter.last = quad{}
	}
	return decibel(energy * m.scale)
}

func silent(pcm []byte) bool {
	for ; len(pcm) >= 8; pcm = pcm[8:] {
		if binary.LittleEndian.Uint64(pcm) != 0 {
			return false
		}
	}
	return !slices.ContainsFunc(pcm, func(b byte) bool { return b != 0 })
}

func (m *frameMeter) slowDown(samples []float64) {
	if m.slowLen+len(samples) > len(m.slow) {
		m.slowLen = copy(m.slow[:], m.slow[m.slowLen-pitchSpan:m.slowLen])
	}
	sum, count, at := m.slowSum, m.slowCount, m.slowLen
	if m.decimate == 4 && count == 0 { // at 16 kHz, where this saves nine tenths of the work
		for ; len(samples) >= 4 && at < len(m.slow); samples = samples[4:] {
			m.slow[at] = float32((samples[0] + samples[1]) + (samples[2] + samples[3]))
			at++
		}
	}
	for len(samples) > 0 {
		part := samples[:min(m.decimate-count, len(samples))]
		samples, count = samples[len(part):], count+len(part)
		for ; len(part) >= 4; part = part[4:] {
			sum += (part[0] + part[1]) + (part[2] + part[3])
		}
		for _, v := range part {
			sum += v
		}
		if count == m.decimate {
			m.slow[at] = float32(sum)
			at++
			sum, count = 0, 0
		}
	}
	m.slowSum, m.slowCount, m.slowLen = sum, count, at
}

func (m *frameMeter) pitched() bool {
	span := m.slow[m.slowLen-pitchSpan : m.slowLen]
	now := span[maxLag:]
	power := energyOf(now)
	if power == 0 {
		return false
	}
	// The energy of the window at each lag follows from the previous one.
	from := maxLag - minLag
	past := energyOf(span[from : from+pitchWindow])
	for lag := minLag; lag <= maxLag; lag++ {
		from = maxLag - lag
		then := span[from : from+pitchWindow]
		if past > 0 && float64(dot(now, then)) > pitchMatch*math.Sqrt(power*past) {
			return true
		}
		if from > 0 {
			in, out := float64(span[from-1]), float64(then[pitchWindow-1])
			past += in*in - out*out
		}
	}
	return false
}

func energyOf(x []float32) (sum float64) {
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return sum
}

// A noiseFloor follows the level of the background, in dB, by its minimum over the last floorSpans*spanFrames frames
// (R. Martin, "Noise power spectral density estimation based on optimal smoothing and minimum statistics", 2001, in its
// simplest form): speech has dips in every second, noise does not.
type noiseFloor struct {
	level float64 // the estimate

	smooth float64 // the level, smoothed over about 40 ms
	spans  [floorSpans]float64
	span   int // index in spans of the current one
	frames int // in the current span
}

const (
	floorSpans = 8
	spanFrames = 20

	// quietRoom is assumed until enough audio was processed.
	quietRoom = -60.0
	minFloor  = -70.0
	maxFloor  = -20.0

	// floorBias is how far the minimum of a smoothed noise is below its mean.
	floorBias = 1.0
	// slowRise is how fast the floor rises above the ceiling of update, in dB a frame: a vowel may be held for nine
	// seconds, and louder noise that begins during speech is recognised in the end.
	slowRise = 0.02
)

func (f *noiseFloor) reset() {
	*f = noiseFloor{level: quietRoom, smooth: quietRoom}
	for i := range f.spans {
		f.spans[i] = quietRoom
	}
}

// update processes the level of one more frame. Up to ceiling the estimate may jump, above it only creep.
func (f *noiseFloor) update(level, ceiling float64) {
	f.smooth += (level - f.smooth) * 0.25
	if f.frames == 0 || f.smooth < f.spans[f.span] {
		f.spans[f.span] = f.smooth
	}
	if f.frames++; f.frames == spanFrames {
		f.frames, f.span = 0, (f.span+1)%floorSpans
	}
	lowest := f.smooth
	for _, v := range f.spans {
		if v < lowest { // cheaper than min, and nothing here is NaN
			lowest = v
		}
	}
	next := min(max(lowest+floorBias, minFloor), maxFloor)
	f.level = min(next, max(ceiling, f.level+slowRise))
}

// highPass is a Butterworth high-pass of fourth order, without its gain. Its four zeros are at
// direct current: they are the fourth difference of the samples, which integers compute
// exactly. The rest is a recursion, in which each output depends on the earlier ones.
type highPass struct {
	// Fixed after newHighPass.
	poles quad // y = u - poles[0]*y1 - poles[1]*y2 - poles[2]*y3 - poles[3]*y4
	block block

	past [pastBytes]byte // the last samples
	last quad            // the last outputs, newest last
}

type quad [4]float64

// block is the recursion solved for eight outputs, so that vector code can compute them at once.
type block struct {
	early, late [4]quad // what each of the last four outputs adds to the next four, and to those after
	// echo is the effect of a difference on the output of the same sample and of the next seven, after three zeros.
	echo [3 + eight]float64
}

const (
	eight        = 8                  // outputs of a block
	pastBytes    = 4 * BytesPerSample // how far differences reach back
	chunkSamples = 160                // the maximum input of filter
)

// newHighPass designs the filter by the bilinear transform (R. Bristow-Johnson, "Cookbook formulae for audio EQ biquad
// filter coefficients"), as a product of two sections. It also returns the gain that the filter leaves out.
func newHighPass(rate int, hz float64) (f highPass, gain float64) {
	sin, cos := math.Sincos(2 * math.Pi * hz / float64(rate))
	section := func(q float64) (a, b, gain float64) {
		alpha := sin / (2 * q)
		return -2 * cos / (1 + alpha), (1 - alpha) / (1 + alpha), (1 + cos) / 2 / (1 + alpha)
	}
	a1, b1, gain1 := section(0.5412)
	a2, b2, gain2 := section(1.3066)
	f.poles = quad{a1 + a2, b1 + a1*a2 + b2, a1*b2 + a2*b1, b1 * b2}
	for i := range f.last {
		y := quad{}
		y[i] = 1
		for j := range f.block.early[i] {
			f.block.early[i][j] = f.poles.next(&y, 0)
		}
		for j := range f.block.late[i] {
			f.block.late[i][j] = f.poles.next(&y, 0)
		}
	}
	u, y := 1.0, quad{}
	for i := range eight {
		f.block.echo[3+i] = f.poles.next(&y, u)
		u = 0
	}
	return f, gain1 * gain2
}

func (p *quad) next(y *quad, u float64) float64 {
	*y = quad{y[1], y[2], y[3], u - p[3]*y[0] - p[2]*y[1] - p[1]*y[2] - p[0]*y[3]}
	return y[3]
}

func (f *highPass) filter(pcm []byte, out []float64) (energy float64) {
	var room [pastBytes + chunkSamples*BytesPerSample]byte
	copy(room[:], f.past[:])
	in := room[:pastBytes+copy(room[pastBytes:], pcm)]
	f.past = [pastBytes]byte(in[len(in)-pastBytes:])
	done, energy := f.blocks(in, out)
	in, out = in[done*BytesPerSample:], out[done:]
	p, y1, y2, y3, y4 := &f.poles, f.last[3], f.last[2], f.last[1], f.last[0]
	s1, s2, s3, s4 := int32(sampleAt(in, 6)), int32(sampleAt(in, 4)), int32(sampleAt(in, 2)), int32(sampleAt(in, 0))
	in = in[pastBytes:]
	for i := 0; i+1 < len(in); i += BytesPerSample {
		s := int32(sampleAt(in, i))
		y := ((float64(s-4*(s1+s3)+6*s2+s4) - p[3]*y4) - (p[2]*y3 + p[1]*y2)) - p[0]*y1
		s1, s2, s3, s4 = s, s1, s2, s3
		y1, y2, y3, y4 = y, y1, y2, y3
		energy += y * y
		out[i/BytesPerSample] = y
	}
	f.last = quad{y4, y3, y2, y1}
	return energy
}
