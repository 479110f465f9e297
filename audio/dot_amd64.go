//go:build !purego

package audio

// dot is dotGo with vector instructions. The resampler spends nearly all its
// time here, and the compiler does not vectorise.
//
//go:noescape
func dot(c, x []float32) float32
