package audio

import (
	"math"
	"math/rand/v2"
	"testing"
)

// biquad is a textbook second order section in transposed direct form II.
type biquad struct {
	b0, b1, b2, a1, a2 float64
	z1, z2             float64
}

func newBiquad(rate int, hz, q float64) biquad {
	sin, cos := math.Sincos(2 * math.Pi * hz / float64(rate))
	alpha := sin / (2 * q)
	a0 := 1 + alpha
	return biquad{
		b0: (1 + cos) / 2 / a0, b1: -(1 + cos) / a0, b2: (1 + cos) / 2 / a0,
		a1: -2 * cos / a0, a2: (1 - alpha) / a0,
	}
}

func (f *biquad) next(v float64) float64 {
	out := f.b0*v + f.z1
	f.z1 = f.b1*v - f.a1*out + f.z2
	f.z2 = f.b2*v - f.a2*out
	return out
}

// referenceFilter is the high-pass of a Detector as two sections, one sample after another.
type referenceFilter [2]biquad

func newReferenceFilter(rate int) referenceFilter {
	return referenceFilter{newBiquad(rate, highPassHz, 0.5412), newBiquad(rate, highPassHz, 1.3066)}
}

func (f *referenceFilter) next(sample int16) float64 {
	return f[1].next(f[0].next(float64(sample) / 32768))
}

// ReferenceHear returns the decisions of a Detector with the plainest measurements: the filter sample by sample, and the
// pitch by the whole correlation at each lag. It is slow.
func ReferenceHear(opt DetectorOptions, pcm []byte) (all []Activity) {
	d := NewDetector(opt)
	filter := newReferenceFilter(d.opt.Rate)
	decimate := (d.opt.Rate + slowRate/2) / slowRate
	slow := make([]float64, pitchSpan)
	energy, sum := 0.0, 0.0
	for n := 1; n*BytesPerSample <= len(pcm); n++ {
		v := filter.next(sampleAt(pcm, (n-1)*BytesPerSample))
		energy += v * v
		sum += v
		if n%decimate == 0 {
			slow = append(slow, sum)
			sum = 0
		}
		if n%d.frame != 0 {
			continue
		}
		level := decibel(energy / float64(d.frame))
		energy = 0
		d.found = d.found[:0]
		d.decide(level, d.wantsPitch(level) && referencePitched(slow[len(slow)-pitchSpan:]))
		d.floor.update(level, d.ceiling())
		all = append(all, d.found...)
	}
	return all
}

func referencePitched(span []float64) bool {
	dot := func(a, b []float64) (sum float64) {
		for i := range a {
			sum += a[i] * b[i]
		}
		return sum
	}
	now := span[maxLag:]
	for lag := minLag; lag <= maxLag; lag++ {
		then := span[maxLag-lag:][:pitchWindow]
		if power := dot(now, now) * dot(then, then); power > 0 && dot(now, then) > pitchMatch*math.Sqrt(power) {
			return true
		}
	}
	return false
}

// TestHighPassAgreesWithSections compares the filter, in blocks and sample by sample, with two sections one after
// another, on signals with hum and direct current.
func TestHighPassAgreesWithSections(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, rate := range []int{MinRate, 11025, 16000, 24000, 44100, 48000, MaxRate} {
		whole, gain := newHighPass(rate, highPassHz)
		single := whole
		reference := newReferenceFilter(rate)
		// The poles are closer together at a higher rate, and cost digits.
		slack := 1e-6
		if rate > 48000 {
			slack = 1e-4 // of the energy: 0.0005 dB
		}
		at := 0
		for range 200 {
			n := 1 + rng.IntN(chunkSamples)
			pcm := make([]byte, 0, n*BytesPerSample)
			for range n {
				v := 6000*math.Sin(2*math.Pi*50*float64(at)/float64(rate)) + 3000*rng.NormFloat64() + 9000
				pcm = appendSample(pcm, clip16(v))
				at++
			}
			var got, one [chunkSamples]float64
			energy := whole.filter(pcm, got[:])
			var singly, expected float64
			for i := range n {
				singly += single.filter(pcm[i*BytesPerSample:][:BytesPerSample], one[i:])
				want := reference.next(sampleAt(pcm, i*BytesPerSample))
				expected += want * want
				for name, v := range map[string]float64{"in blocks": got[i], "one by one": one[i]} {
					if v *= gain / 32768; math.Abs(v-want) > slack/10 {
						t.Fatalf("%d Hz, sample %d of %d, %s: %v, want %v", rate, i, n, name, v, want)
					}
				}
			}
			for name, v := range map[string]float64{"in blocks": energy, "one by one": singly} {
				if v *= gain / 32768 * gain / 32768; math.Abs(v-expected) > slack*expected {
					t.Fatalf("%d Hz, %d samples, %s: energy %v, want %v", rate, n, name, v, expected)
				}
			}
		}
	}
}
