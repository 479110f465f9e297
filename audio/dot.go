package audio

import "math"

// dotGo returns the sum of the products of c and x, which have the same length, a
// multiple of tapAlign. Eight partial sums keep the processor's adders busy;
// the explicit conversions keep the compiler from fusing multiply and add, so
// that every platform computes the same bits.
func dotGo(c, x []float32) float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	x = x[:len(c)]
	for len(c) >= tapAlign && len(x) >= tapAlign {
		s0 += float32(c[0] * x[0])
		s1 += float32(c[1] * x[1])
		s2 += float32(c[2] * x[2])
		s3 += float32(c[3] * x[3])
		s4 += float32(c[4] * x[4])
		s5 += float32(c[5] * x[5])
		s6 += float32(c[6] * x[6])
		s7 += float32(c[7] * x[7])
		c, x = c[tapAlign:], x[tapAlign:]
	}
	s0, s1, s2, s3 = s0+s4, s1+s5, s2+s6, s3+s7
	return (s0 + s2) + (s1 + s3)
}

// four describes four samples at once: out[i] is the dot product of c[i] and x[i], which all
// have the same length, a multiple of tapAlign, rounded to a sample by round16. Vector code adds
// up four results with few more instructions than one, and has four sums to work on while it
// waits for an adder.
type four struct {
	c, x [4][]float32
	out  [4]int16
}

func (f *four) samplesGo() {
	for i := range f.out {
		f.out[i] = round16(dot(f.c[i], f.x[i]))
	}
}

// round16 rounds to the nearest sample, halves to the even one, and clips at full scale. v
// must be far inside the range of an int32.
func round16(v float32) int16 {
	return int16(min(max(int32(math.RoundToEven(float64(v))), math.MinInt16), math.MaxInt16))
}
