package audiotest

import "math"

// SNR returns how far the sine of hz in pcm is above everything else in it, in dB: the sine
// of any amplitude and phase that fits best is subtracted, and so is a constant; the rest is
// noise, distortion and aliases.
func SNR(pcm []byte, rate int, hz float64) float64 {
	signal, rest := fit(pcm, rate, hz)
	return 10 * math.Log10(signal/max(rest, 1e-12))
}

// ToneLevel returns the level of the sine of hz in pcm, in dBFS as Tone uses
// it.
func ToneLevel(pcm []byte, rate int, hz float64) float64 {
	signal, _ := fit(pcm, rate, hz)
	return 10 * math.Log10(max(2*signal, 1e-12)/(32767*32767))
}

// Level returns the rms of pcm without its mean, in dB relative to the rms of
// a full-scale sine: the level of the Tone with the same power.
func Level(pcm []byte) float64 {
	n := len(pcm) / 2
	sum, square := 0.0, 0.0
	for i := range n {
		v := float64(at(pcm, i))
		sum += v
		square += v * v
	}
	mean := sum / float64(n)
	power := square/float64(n) - mean*mean
	return 10 * math.Log10(max(2*power, 1e-12)/(32767*32767))
}

// fit returns the power of the best-fitting sine and of the rest.
func fit(pcm []byte, rate int, hz float64) (signal, rest float64) {
	n := len(pcm) / 2
	step := 2 * math.Pi * hz / float64(rate)
	// Least squares for a*sin + b*cos + c: the normal equations.
	var m [3][4]float64
	for i := range n {
		s, c := math.Sincos(step * float64(i))
		row := [4]float64{s, c, 1, float64(at(pcm, i))}
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
		d := float64(at(pcm, i)) - sine - x[2]
		rest += d * d
	}
	return signal / float64(n), rest / float64(n)
}

// solve is Gaussian elimination; the matrix of fit is symmetric and positive.
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
