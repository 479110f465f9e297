// Package pace decides when each piece of a spoken line leaves the simulated
// model, and how much of it the user can have heard.
//
// A Delivery has no clock and no goroutine. Its times are offsets from the
// moment the answer began; the owner keeps a timer for Due and takes what is
// due with Next. That makes it exact under testing/synctest.
package pace

import "time"

// Options are the habits of a model's delivery. Zero values are the defaults.
type Options struct {
	// ChunkMS is the length of a chunk in ms of audio. Zero means 250, the mean
	// in the OpenAI recordings; gemini passes its own default.
	ChunkMS int
	// FirstAudioMS is the time from the beginning of the answer to its first
	// audio. Zero means 200; a negative value means none.
	FirstAudioMS int
	// Speed is how many seconds of audio leave in a second. Zero means 4; a
	// negative value means everything at once.
	Speed float64
	// WordsAheadMS is how far the words run ahead of the audio they belong to,
	// in ms of audio. Zero means 1000; a negative value means that words leave
	// with the chunk in which they begin.
	WordsAheadMS int
}

// Word is a piece of the transcript and where in the audio it is heard.
type Word struct {
	Text  string
	Start time.Duration
}

// Line is one spoken line in the format that is sent.
type Line struct {
	// Audio is the encoded audio, BytesPerMS bytes for each ms (PCM16 at
	// 24 kHz: 48, G.711: 8). It may be empty: the words alone are delivered,
	// each at its Start divided by the speed.
	Audio      []byte
	BytesPerMS int
	// Words together are the transcript, in order.
	Words []Word
}

// Part is what leaves at one moment: first the words, then the audio.
type Part struct {
	At    time.Duration
	Words []Word
	Audio []byte
	// From and To are the audio's place in the line.
	From, To time.Duration
}
