// Package pace decides when each piece of a spoken line leaves the simulated
// model, and how much of it the user can have heard.
//
// A Delivery has no clock and no goroutine. Its times are offsets from the
// start of the answer; the owner keeps a timer for Due and takes the
// due parts with Next. That makes it exact under testing/synctest.
package pace

import (
	"time"

	"voicegw/sim/voice"
)

// Options configure a model's delivery. Zero values mean the defaults.
type Options struct {
	// ChunkMS is the length of a chunk in ms of audio. Zero means 250, the mean
	// in the OpenAI recordings; gemini passes its own default.
	ChunkMS int
	// FirstAudioMS is the time from the beginning of the answer to its first
	// audio. Zero means 200; a negative value means no delay.
	FirstAudioMS int
	// Speed is how many seconds of audio are sent per second. Zero means 4; a
	// negative value means everything at once.
	Speed float64
	// WordsWithAudio means that words leave with the chunk in which they begin; without it they
	// run 1 s of audio ahead.
	WordsWithAudio bool
}

// Word is a piece of the transcript and where in the audio it is heard.
type Word = voice.Word

// Line is one spoken line in the format that is sent.
type Line struct {
	// Audio is the encoded audio, BytesPerMS bytes for each ms (PCM16 at
	// 24 kHz: 48, G.711: 8). If it is empty, only the words are delivered,
	// each at its Start divided by the speed.
	Audio      []byte
	BytesPerMS int
	// Words are the pieces of the transcript, in order.
	Words []Word
}

// Part is what is sent at one moment: first the words, then the audio.
type Part struct {
	Words []Word
	Audio []byte
	// From and To are the audio's place in the line.
	From, To time.Duration
}
