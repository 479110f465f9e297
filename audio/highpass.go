package audio

import "math"

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

// quad are four outputs in a row.
type quad [4]float64

// block is the recursion solved for eight outputs, so that vector code can compute them at once.
type block struct {
	early, late [4]quad // what each of the last four outputs adds to the next four, and to those after
	// echo is what a difference adds to the output of the same sample and to the next seven, after three zeros.
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
