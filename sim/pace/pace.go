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
}

// Word is a piece of the transcript and where in the audio it is heard.
type Word struct {
	Text  string
	Start time.Duration
}

// Line is one spoken line in the format that is sent.
type Line struct {
	// Audio is the encoded audio, BytesPerMS bytes for each ms (PCM16 at
	// 24 kHz: 48, G.711: 8). It may be empty: the words alone are delivered.
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

// Delivery hands out a line's parts in order. One goroutine at a time may use it.
type Delivery struct{}

// New begins a delivery of line.
func New(line Line, o Options) *Delivery { return &Delivery{} }

// Due tells when the next part leaves; false when there is none, because all
// are gone or Stop was called.
func (d *Delivery) Due() (time.Duration, bool) { return 0, false }

// Next hands out the next part, whether or not it is due; false when there is none.
func (d *Delivery) Next() (Part, bool) { return Part{}, false }

// Stop throws away what was not handed out. It may be called more than once.
func (d *Delivery) Stop() {}

// Duration is the length of the whole line.
func (d *Delivery) Duration() time.Duration { return 0 }

// Sent is the length of the audio handed out.
func (d *Delivery) Sent() time.Duration { return 0 }

// Heard is how much of the line a client has heard at now (an offset like Due)
// if it plays in real time from the first audio on and never lacks audio.
// Never more than Sent.
func (d *Delivery) Heard(now time.Duration) time.Duration { return 0 }

// PlayedOut tells when such a client has played everything handed out so far:
// the offset at which Heard becomes Sent.
func (d *Delivery) PlayedOut() time.Duration { return 0 }

// Text is the transcript up to a place in the audio: all words that begin
// before it. Text(d.Duration()) is the whole line.
func (d *Delivery) Text(to time.Duration) string { return "" }
