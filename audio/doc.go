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
// Detector.Process, Level) allocate nothing if the destination has enough capacity.
package audio
