package audio

import (
	"math"
	"time"
)

// MinRate and MaxRate are the bounds of the sample rates that a Resampler and a Detector take, in Hz.
const (
	MinRate = 8000
	MaxRate = 192000
)

// BytesPerSample is the size of one PCM sample.
const BytesPerSample = 2

// Duration returns how long n bytes of PCM last at rate Hz. A trailing half
// sample does not count. The result is 0 if rate or n is not positive.
func Duration(rate, n int) time.Duration {
	if rate <= 0 || n <= 0 {
		return 0
	}
	samples := int64(n / BytesPerSample)
	// Whole seconds first, so that hours of audio cannot overflow.
	r := int64(rate)
	return time.Duration(samples/r)*time.Second + time.Duration(samples%r*int64(time.Second)/r)
}

// Bytes returns the size of the PCM that lasts d at rate Hz: the whole samples
// that fit into d. The result is 0 if rate or d is not positive.
func Bytes(rate int, d time.Duration) int {
	if rate <= 0 || d <= 0 {
		return 0
	}
	r := int64(rate)
	samples := int64(d/time.Second)*r + int64(d%time.Second)*r/int64(time.Second)
	return int(samples) * BytesPerSample
}

// MS returns how many whole milliseconds n bytes of PCM last at rate Hz. The result is
// 0 if rate or n is not positive.
func MS(rate, n int) int64 {
	if rate <= 0 || n <= 0 {
		return 0
	}
	return int64(n/BytesPerSample) * 1000 / int64(rate)
}

// sampleAt returns the sample that begins at byte i.
func sampleAt(pcm []byte, i int) int16 {
	return int16(uint16(pcm[i]) | uint16(pcm[i+1])<<8)
}

// appendSample appends one sample.
func appendSample(dst []byte, s int16) []byte {
	return append(dst, byte(s), byte(uint16(s)>>8))
}

// clip16 rounds to the nearest sample, halves away from zero, and clips at
// full scale. NaN becomes silence.
func clip16(v float64) int16 {
	switch {
	case v >= math.MaxInt16:
		return math.MaxInt16
	case v <= math.MinInt16:
		return math.MinInt16
	case v != v:
		return 0
	}
	return int16(math.Round(v))
}
