package testutil

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"time"
)

// Silence returns zeros of duration d at rate Hz.
func Silence(rate int, d time.Duration) []byte { return make([]byte, 2*samples(rate, d)) }

// Tone returns a sine of hz whose peaks reach dBFS.
func Tone(rate int, hz, dBFS float64, d time.Duration) []byte {
	amp := 32767 * math.Pow(10, dBFS/20)
	step := 2 * math.Pi * hz / float64(rate)
	return render(samples(rate, d), func(i int) float64 { return amp * math.Sin(step*float64(i)) })
}

// Noise returns white Gaussian noise with an RMS of dBFS.
func Noise(rate int, dBFS float64, d time.Duration, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	amp := 32768 * math.Pow(10, dBFS/20)
	return render(samples(rate, d), func(int) float64 { return amp * rng.NormFloat64() })
}

// SpeechLike returns audio that a voice activity detector takes for one utterance at about -20 dBFS: syllables of 120 to
// 250 ms with a gliding pitch of 80 to 180 Hz and three formants, with dips of up to 80 ms between them. It starts and
// ends within sound, with 5 ms ramps.
func SpeechLike(rate int, d time.Duration, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 2))
	n := samples(rate, d)
	out := make([]float64, n)
	for at := 0; at < n; {
		length := rate * (120 + rng.IntN(131)) / 1000
		if rest := n - at; rest < length+rate/5 {
			length = rest // no short rest or dip at the end
		}
		syllable(out[at:at+length], rate, rng)
		at += length
		if at < n {
			at += rate * (30 + rng.IntN(51)) / 1000
		}
	}
	return render(n, func(i int) float64 { return out[i] })
}

func syllable(out []float64, rate int, rng *rand.Rand) {
	pitch, glide := 90+60*rng.Float64(), 0.8+0.4*rng.Float64()
	formants := [3]float64{300 + 500*rng.Float64(), 900 + 900*rng.Float64(), 2300 + 500*rng.Float64()}
	gains := [3]float64{1, 0.4, 0.15}
	edge := float64(rate) * 0.005
	phase, power, n := 0.0, 0.0, float64(len(out))
	for i := range out {
		f0 := pitch * (1 + (glide-1)*float64(i)/n)
		phase += 2 * math.Pi * f0 / float64(rate)
		v := 0.0
		// sin(kx) by recurrence: calling math.Sin for each would dominate a test's time.
		before, wave, twice := 0.0, math.Sin(phase), 2*math.Cos(phase)
		for k := 1; float64(k)*f0 < min(3400, 0.45*float64(rate)); k++ {
			g := 0.0
			for j, f := range formants {
				off := (float64(k)*f0 - f) / 120
				g += gains[j] / (1 + off*off)
			}
			v += g * wave
			before, wave = wave, twice*wave-before
		}
		shape := min(1, float64(i)/edge, (n-float64(i))/edge)
		out[i] = shape * v
		power += out[i] * out[i] / n
	}
	gain := 32768 * math.Pow(10, (-22+4*rng.Float64())/20) / math.Sqrt(power)
	for i := range out {
		out[i] *= gain
	}
}

// Mix adds signals sample by sample and clips. The result is as long as the longest.
func Mix(signals ...[]byte) []byte {
	n := 0
	for _, s := range signals {
		n = max(n, len(s)/2)
	}
	return render(n, func(i int) float64 {
		sum := 0.0
		for _, s := range signals {
			if 2*i+1 < len(s) {
				sum += float64(at(s, i))
			}
		}
		return sum
	})
}

func samples(rate int, d time.Duration) int {
	return int(int64(d) / 1000 * int64(rate) / int64(time.Second/1000))
}

func at(pcm []byte, i int) int16 { return int16(uint16(pcm[2*i]) | uint16(pcm[2*i+1])<<8) }

func render(n int, f func(i int) float64) []byte {
	out := make([]byte, 0, 2*n)
	for i := range n {
		v := int16(math.Round(min(max(f(i), -32768), 32767)))
		out = append(out, byte(v), byte(uint16(v)>>8))
	}
	return out
}

// Level returns the root mean square and the peak of pcm in dBFS, at least -120: 0 dBFS is a sample of magnitude 32768.
func Level(pcm []byte) (rms, peak float64) {
	sum, top := 0.0, 0.0
	for i := 0; i+1 < len(pcm); i += 2 {
		v := float64(int16(binary.LittleEndian.Uint16(pcm[i:]))) / 32768
		sum += v * v
		top = max(top, math.Abs(v))
	}
	decibel := func(power float64) float64 { return 10 * math.Log10(max(power, 1e-12)) }
	return decibel(sum / float64(max(len(pcm)/2, 1))), decibel(top * top)
}
