package audio

import "errors"

// The errors of this package. Compare with errors.Is; the text around them
// says what was found and what is accepted.
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
