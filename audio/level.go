package audio

import "math"

// MinLevel is what Level returns for digital silence, in dBFS, instead of
// minus infinity.
const MinLevel = -120.0

// Level returns the root mean square and the peak of pcm in dBFS: 0 dBFS is a
// sample of magnitude 32768, so that a full-scale sine has an rms of -3.01 and
// nothing exceeds 0. For silence and empty input it returns MinLevel. A trailing half
// sample is ignored.
func Level(pcm []byte) (rms, peak float64) {
	n := len(pcm) / BytesPerSample
	if n == 0 {
		return MinLevel, MinLevel
	}
	var sum uint64
	var top int32
	for i := 0; i+1 < len(pcm); i += BytesPerSample {
		s := int32(sampleAt(pcm, i))
		if s < 0 {
			s = -s
		}
		top = max(top, s)
		sum += uint64(s * s)
	}
	const full = 32768.0
	return decibel(float64(sum) / float64(n) / (full * full)), decibel(float64(top) * float64(top) / (full * full))
}

// decibel converts a power relative to full scale to dBFS, at least MinLevel.
func decibel(power float64) float64 {
	if power <= 1e-12 {
		return MinLevel
	}
	return 10 * math.Log10(power)
}
