//go:build !purego

package audio

import "golang.org/x/sys/cpu"

// hasFMA says that the processor has vectors of four with fused multiply and add, as nearly every amd64 processor does.
var hasFMA = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// blocks filters whole blocks after the first four samples. It returns their number and the sum of the squares.
func (f *highPass) blocks(in []byte, out []float64) (done int, energy float64) {
	n := (len(in)/BytesPerSample - 4) / eight
	if n == 0 || !hasFMA {
		return 0, 0
	}
	done = n * eight
	var squares quad
	filterBlocks(&f.block, in, out[:done], &f.last, &squares)
	return done, (squares[0] + squares[1]) + (squares[2] + squares[3])
}

// filterBlocks fills out, which has room for whole blocks and at least one. squares gets the sums of
// the squares of every fourth output.
//
//go:noescape
func filterBlocks(b *block, in []byte, out []float64, last, squares *quad)
