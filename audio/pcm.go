// Package audio implements the gateway's audio processing: PCM arithmetic,
// sample rate conversion, G.711, base64, WAV files, levels and voice activity.
//
// PCM means 16-bit signed little-endian mono samples in a []byte, unless a
// function says otherwise. Lengths are in bytes, rates in Hz (samples a
// second), times in milliseconds of the audio itself: nothing in this package
// reads a clock, starts a goroutine, logs, or keeps state between callers.
//
// Functions may be called from any goroutine. A Resampler and a Detector hold
// the state of one stream and belong to one goroutine at a time.
//
// The functions that run for every frame (Append..., Resampler.Process,
// Detector.Process) allocate nothing if the destination has enough capacity.
package audio

import (
	"errors"
	"math"
	"sync"
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

func sampleAt(pcm []byte, i int) int16 {
	return int16(uint16(pcm[i]) | uint16(pcm[i+1])<<8)
}

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

// Frame is a pooled buffer of PCM audio that waits in a queue.
type Frame struct{ PCM []byte }

// FrameCap is the capacity of a pooled frame in bytes: 100 ms at 48 kHz, the longest frame sent to a client. A longer
// frame from a client gets a larger buffer.
const FrameCap = 9600

var frames = sync.Pool{New: func() any { return &Frame{PCM: make([]byte, 0, FrameCap)} }}

// NewFrame returns a pooled frame with a copy of pcm.
func NewFrame(pcm []byte) *Frame {
	f := frames.Get().(*Frame)
	f.PCM = append(f.PCM[:0], pcm...)
	return f
}

// Extend appends pcm to a waiting frame unless the frame would exceed limit bytes, so that small pieces share a buffer.
// It reports whether it did. f may be nil.
func (f *Frame) Extend(pcm []byte, limit int) bool {
	if f == nil || len(f.PCM)+len(pcm) > limit {
		return false
	}
	f.PCM = append(f.PCM, pcm...)
	return true
}

// Size returns the memory of the frame in bytes. It stays the same while the frame holds at most FrameCap bytes.
func (f *Frame) Size() int { return cap(f.PCM) }

// Free returns the frame to the pool. The caller must not use it afterwards.
func (f *Frame) Free() {
	if cap(f.PCM) >= FrameCap {
		frames.Put(f)
	}
}

// minLevel is the level of digital silence, in dBFS, instead of minus infinity.
const minLevel = -120.0

// decibel converts a power relative to full scale to dBFS, at least minLevel.
func decibel(power float64) float64 {
	if power <= 1e-12 {
		return minLevel
	}
	return 10 * math.Log10(power)
}

// Errors of this package, for errors.Is. The text around them names the accepted values.
var (
	// ErrRate says that a sample rate, or the ratio of two, is not supported.
	ErrRate = errors.New("unsupported sample rate")
	// ErrBase64 says that the input is not base64.
	ErrBase64 = errors.New("invalid base64")
	// ErrOddPCM says that PCM has an odd number of bytes, so that its last
	// sample is cut in half.
	ErrOddPCM = errors.New("pcm with an odd number of bytes")
	// ErrNotWAV says that the input is not a RIFF/WAVE file, or one without
	// the chunks that every WAVE file must have.
	ErrNotWAV = errors.New("not a wav file")
	// ErrWAVFormat says that the file is a WAVE file in an encoding, rate or
	// channel layout that this package does not read.
	ErrWAVFormat = errors.New("unsupported wav format")
	// ErrWAVTooLarge says that the audio exceeds the limit.
	ErrWAVTooLarge = errors.New("wav data too large")
)
