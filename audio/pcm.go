// Package audio implements the gateway's audio processing: PCM arithmetic,
// sample rate conversion, G.711, base64, WAV files, levels and voice activity.
//
// PCM means 16-bit signed little-endian mono samples in a []byte, unless a function says otherwise. Lengths are in
// bytes, rates in Hz (samples a second), times in milliseconds of the audio itself: nothing in this package reads a
// clock, starts a goroutine, logs, or keeps state between callers.
//
// Functions may be called from any goroutine. A Resampler and a Detector hold
// the state of one stream and belong to one goroutine at a time.
//
// The functions that run for every frame (Append..., Resampler.Process,
// Detector.Process) allocate nothing if the destination has enough capacity.
package audio

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/asm/base64"
)

// MinRate and MaxRate are the bounds of the sample rates that a Resampler and a Detector take, in Hz.
const (
	MinRate = 8000
	MaxRate = 192000
)

// BytesPerSample is the size of one PCM sample.
const BytesPerSample = 2

// Duration returns how long n bytes of PCM last at rate Hz, without a half sample; 0 if rate or n is not positive.
func Duration(rate, n int) time.Duration {
	if rate <= 0 || n <= 0 {
		return 0
	}
	samples := int64(n / BytesPerSample)
	// Whole seconds first, so that hours of audio cannot overflow.
	r := int64(rate)
	return time.Duration(samples/r)*time.Second + time.Duration(samples%r*int64(time.Second)/r)
}

// Bytes returns the size of the whole samples that fit into d at rate Hz; 0 if rate or d is not positive.
func Bytes(rate int, d time.Duration) int {
	if rate <= 0 || d <= 0 {
		return 0
	}
	r := int64(rate)
	samples := int64(d/time.Second)*r + int64(d%time.Second)*r/int64(time.Second)
	return int(samples) * BytesPerSample
}

// MS returns how many whole milliseconds n bytes of PCM last at rate Hz. The result is 0 if rate or n is not positive.
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

// clip16 rounds to the nearest sample, halves away from zero, and clips at full scale. NaN becomes silence.
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

// FrameCap is the capacity of a pooled frame in bytes: 100 ms at 48 kHz. Longer frames get a larger buffer.
const FrameCap = 9600

var frames = sync.Pool{New: func() any { return &Frame{PCM: make([]byte, 0, FrameCap)} }}

// NewFrame returns a pooled frame with a copy of pcm.
func NewFrame(pcm []byte) *Frame {
	f := frames.Get().(*Frame)
	f.PCM = append(f.PCM[:0], pcm...)
	return f
}

// Extend appends pcm to a waiting frame unless it would exceed limit bytes, and reports whether it did. f may be nil.
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
	// ErrOddPCM says that PCM has an odd number of bytes, so that its last sample is cut in half.
	ErrOddPCM = errors.New("pcm with an odd number of bytes")
	// ErrNotWAV says that the input is not a RIFF/WAVE file, or one without the chunks that every WAVE file must have.
	ErrNotWAV = errors.New("not a wav file")
	// ErrWAVFormat says that this package does not read the file's encoding, rate or channel layout.
	ErrWAVFormat = errors.New("unsupported wav format")
	// ErrWAVTooLarge says that the audio exceeds the limit.
	ErrWAVTooLarge = errors.New("wav data too large")
)

// AppendBase64 appends src in base64 with the standard alphabet and padding (RFC 4648 section 4) to dst. It allocates
// nothing if dst has enough capacity. dst's free capacity and src must not overlap.
func AppendBase64(dst, src []byte) []byte {
	n := base64.StdEncoding.EncodedLen(len(src))
	dst = slices.Grow(dst, n)
	at := len(dst)
	dst = dst[:at+n]
	base64.StdEncoding.Encode(dst[at:], src)
	return dst
}

// AppendFromBase64 decodes src and appends the result to dst. It accepts the standard and the URL-safe alphabet (RFC
// 4648 sections 4 and 5), also mixed, each with full padding or none, and ignores the value of left-over bits, as
// encoding/base64 does. For any other input, including line breaks, it returns ErrBase64 and dst unchanged.
//
// It allocates nothing if dst has enough capacity, except a copy of URL-safe input. dst may be src[:0]: src is then
// decoded in place, and is lost even if an error is returned. Any other overlap of dst's free capacity and src is not
// allowed.
func AppendFromBase64(dst, src []byte) ([]byte, error) {
	body, err := trimPadding(src)
	if err != nil {
		return dst, err
	}
	inPlace := len(body) > 0 && cap(dst) > len(dst) && &dst[:len(dst)+1][len(dst)] == &body[0]
	n := len(body)/4*3 + max(len(body)%4-1, 0)
	grown := slices.Grow(dst, n)[:len(dst)+n]
	if !inPlace { // otherwise this would destroy the input of a second attempt
		if got, err := base64.RawStdEncoding.Decode(grown[len(dst):], body); err == nil && got == n {
			return grown, nil
		}
	}
	if bytes.IndexByte(body, '-') >= 0 || bytes.IndexByte(body, '_') >= 0 {
		body = bytes.Clone(body)
		for i, c := range body {
			switch c {
			case '-':
				body[i] = '+'
			case '_':
				body[i] = '/'
			}
		}
	}
	got, err := base64.RawStdEncoding.Decode(grown[len(dst):], body)
	if err != nil || got != n { // the decoder skips line breaks: fewer bytes came out
		return dst, fmt.Errorf("%w: %d characters hold one outside both alphabets or a line break", ErrBase64, len(src))
	}
	return grown, nil
}

// trimPadding returns src without its padding, if the padding and the length are valid.
func trimPadding(src []byte) ([]byte, error) {
	body := src
	for len(src)-len(body) < 2 && len(body) > 0 && body[len(body)-1] == '=' {
		body = body[:len(body)-1]
	}
	if len(body)%4 == 1 || (len(body) < len(src) && len(src)%4 != 0) {
		return nil, fmt.Errorf("%w: %d characters with %d of padding", ErrBase64, len(src), len(src)-len(body))
	}
	return body, nil
}
