//go:build !purego

package audio

import "golang.org/x/sys/cpu"

// hasAVX says that the processor has vectors of eight, as nearly every amd64 processor does.
var hasAVX = cpu.X86.HasAVX

// dot is dotGo with vector instructions: the compiler does not vectorise.
//
//go:noescape
func dot(c, x []float32) float32

// samples computes the four samples. The resampler spends most of its time here.
func (f *four) samples() {
	if !hasAVX {
		f.samplesGo()
		return
	}
	samplesAVX(f)
}

//go:noescape
func samplesAVX(f *four)
