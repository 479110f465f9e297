package audio_test

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"voicegw/internal/testutil"
)

// snrOf returns the level of the sine of hz in pcm above the rest of pcm, in dB: the best-fitting sine of any amplitude
// and phase and a constant are subtracted; the rest is noise, distortion and aliases.
func snrOf(pcm []byte, rate int, hz float64) float64 {
	signal, rest := fitSine(pcm, rate, hz)
	return 10 * math.Log10(signal/max(rest, 1e-12))
}

// toneLevelOf returns the level of the sine of hz in pcm, in the dBFS of audiotest.Tone.
func toneLevelOf(pcm []byte, rate int, hz float64) float64 {
	signal, _ := fitSine(pcm, rate, hz)
	return 10 * math.Log10(max(2*signal, 1e-12)/(32767*32767))
}

// levelOf returns the rms of pcm without its mean, in dB relative to the rms of a full-scale sine: the level of the tone
// with the same power.
func levelOf(pcm []byte) float64 {
	n := len(pcm) / 2
	sum, square := 0.0, 0.0
	for i := range n {
		v := sampleOf(pcm, i)
		sum += v
		square += v * v
	}
	mean := sum / float64(n)
	power := square/float64(n) - mean*mean
	return 10 * math.Log10(max(2*power, 1e-12)/(32767*32767))
}

// fitSine returns the power of the best-fitting sine and of the rest.
func fitSine(pcm []byte, rate int, hz float64) (signal, rest float64) {
	n := len(pcm) / 2
	step := 2 * math.Pi * hz / float64(rate)
	// Least squares for a*sin + b*cos + c: the normal equations.
	var m [3][4]float64
	for i := range n {
		s, c := math.Sincos(step * float64(i))
		row := [4]float64{s, c, 1, sampleOf(pcm, i)}
		for j := range 3 {
			for k := range 4 {
				m[j][k] += row[j] * row[k]
			}
		}
	}
	x := solve(m)
	for i := range n {
		s, c := math.Sincos(step * float64(i))
		sine := x[0]*s + x[1]*c
		signal += sine * sine
		d := sampleOf(pcm, i) - sine - x[2]
		rest += d * d
	}
	return signal / float64(n), rest / float64(n)
}

// solve is Gaussian elimination; the matrix of fitSine is symmetric and positive.
func solve(m [3][4]float64) (x [3]float64) {
	for j := range 3 {
		for i := j + 1; i < 3; i++ {
			f := m[i][j] / m[j][j]
			for k := j; k < 4; k++ {
				m[i][k] -= f * m[j][k]
			}
		}
	}
	for j := 2; j >= 0; j-- {
		v := m[j][3]
		for k := j + 1; k < 3; k++ {
			v -= m[j][k] * x[k]
		}
		x[j] = v / m[j][j]
	}
	return x
}

func sampleOf(pcm []byte, i int) float64 {
	return float64(int16(binary.LittleEndian.Uint16(pcm[2*i:])))
}

func near(t *testing.T, what string, got, want, slack float64) {
	t.Helper()
	if math.Abs(got-want) > slack {
		t.Errorf("%s is %.3f, want %.3f", what, got, want)
	}
}

// TestMeasures: the measures are right on signals with a known answer.
func TestMeasures(t *testing.T) {
	const rate = 16000
	tone := testutil.Tone(rate, 997, -20, time.Second)
	near(t, "the level of a tone", toneLevelOf(tone, rate, 997), -20, 0.01)
	near(t, "the level of all of it", levelOf(tone), -20, 0.01)
	// Rounding to 16 bits leaves 1/12 of a step squared.
	near(t, "the SNR of a rounded tone", snrOf(tone, rate, 997), 98.1-20, 0.5)

	noise := testutil.Noise(rate, -50, time.Second, 1)
	near(t, "the SNR in noise", snrOf(testutil.Mix(tone, noise), rate, 997), 50-23.01, 0.3)
	near(t, "the tone in noise", toneLevelOf(testutil.Mix(tone, noise), rate, 997), -20, 0.05)
	near(t, "noise as a tone", levelOf(noise), -50+3.01, 0.2)

	other := testutil.Tone(rate, 3000, -60, time.Second)
	near(t, "the SNR with an alias", snrOf(testutil.Mix(tone, other), rate, 997), 40, 0.1)
}
