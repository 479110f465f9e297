//go:build !amd64 || purego

package audio

func dot(c, x []float32) float32 { return dotGo(c, x) }

func (f *four) samples() { f.samplesGo() }
