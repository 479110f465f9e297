package voice

import (
	"cmp"
	"strings"
	"time"
)

// DeliveryOptions configure a model's delivery. Zero values mean the defaults.
type DeliveryOptions struct {
	// ChunkMS is the length of a chunk in ms of audio. Zero means 250, the mean
	// in the OpenAI recordings; gemini passes its own default.
	ChunkMS int
	// FirstAudioMS is the time from the beginning of the answer to its first
	// audio. Zero means 200; a negative value means no delay.
	FirstAudioMS int
	// Speed is how many seconds of audio are sent per second. Zero means 4; a negative value means everything at once.
	Speed float64
	// WordsWithAudio means that words leave with the chunk in which they begin; without it they run 1 s of audio ahead.
	WordsWithAudio bool
}

// Line is one spoken line in the format that is sent.
type Line struct {
	// Audio is the encoded audio, BytesPerMS bytes for each ms (PCM16 at 24 kHz: 48, G.711: 8). If it is empty, only
	// the words are delivered, each at its Start divided by the speed.
	Audio      []byte
	BytesPerMS int
	// Words are the pieces of the transcript, in order.
	Words []Word
}

// Part is sent at one moment: first the words, then the audio.
type Part struct {
	Words []Word
	Audio []byte
	// From and To are the audio's place in the line.
	From, To time.Duration
}

// Delivery decides when each part of a spoken line leaves the simulated model, and how much of it the user
// can have heard. It returns the parts in order and must not be used concurrently.
//
// It has no clock and no goroutine: its times are offsets from the start of the answer. The owner keeps a
// timer for Due and takes the due parts with Next, so it is exact under testing/synctest.
type Delivery struct {
	// Fixed after NewDelivery.
	line  Line
	first time.Duration // offset of the first part
	chunk int           // bytes
	speed float64       // 0 is everything at once
	ahead time.Duration

	// Owned by the caller of Next.
	pos, word int           // bytes and words returned so far
	begun     time.Duration // when the first part with audio was due
	playedOut time.Duration
	stopped   bool
}

// NewDelivery begins a delivery of line.
func NewDelivery(line Line, o DeliveryOptions) *Delivery {
	line.BytesPerMS = max(line.BytesPerMS, 1)
	d := &Delivery{
		line: line, ahead: time.Second, speed: max(cmp.Or(o.Speed, 4), 0), chunk: max(cmp.Or(o.ChunkMS, 250), 1) * line.BytesPerMS,
		first: time.Duration(max(cmp.Or(o.FirstAudioMS, 200), 0)) * time.Millisecond,
	}
	if o.WordsWithAudio {
		d.ahead = 0
	}
	return d
}

func (d *Delivery) span(n int) time.Duration {
	return time.Duration(n) * time.Millisecond / time.Duration(d.line.BytesPerMS)
}

// at is when the audio (or, without audio, the word) at offset is sent.
func (d *Delivery) at(offset time.Duration) time.Duration {
	if d.speed == 0 {
		return d.first
	}
	return d.first + time.Duration(float64(offset)/d.speed)
}

// Due returns when the next part is due; false after the last one, and after Stop.
func (d *Delivery) Due() (time.Duration, bool) {
	switch {
	case d.stopped:
		return 0, false
	case d.pos < len(d.line.Audio):
		return d.at(d.span(d.pos)), true
	case d.word < len(d.line.Words) && len(d.line.Audio) == 0:
		return d.at(d.line.Words[d.word].Start), true
	}
	return 0, false
}

// Next returns the next part, whether or not it is due; false after the last one.
func (d *Delivery) Next() (Part, bool) {
	at, ok := d.Due()
	if !ok {
		return Part{}, false
	}
	if len(d.line.Audio) == 0 {
		d.word++
		return Part{Words: d.line.Words[d.word-1 : d.word]}, true
	}
	end := min(d.pos+d.chunk, len(d.line.Audio))
	p := Part{Audio: d.line.Audio[d.pos:end], From: d.span(d.pos), To: d.span(end)}
	from := d.word
	for d.word < len(d.line.Words) && (end == len(d.line.Audio) || d.line.Words[d.word].Start < p.To+d.ahead) {
		d.word++
	}
	p.Words = d.line.Words[from:d.word]
	if d.pos == 0 {
		d.begun = at
	}
	d.pos = end
	d.playedOut = max(d.begun+p.To, at+p.To-p.From)
	return p, true
}

// Stop drops the parts not returned yet. It may be called more than once.
func (d *Delivery) Stop() { d.stopped = true }

// Duration is the length of the whole line's audio.
func (d *Delivery) Duration() time.Duration { return d.span(len(d.line.Audio)) }

// Sent is the length of the audio returned so far.
func (d *Delivery) Sent() time.Duration { return d.span(d.pos) }

// SentText is the transcript returned so far, which runs ahead of the audio.
func (d *Delivery) SentText() string { return join(d.line.Words[:d.word]) }

// PlayedOut returns when a client has played everything returned so far (an offset like Due) if it plays in real time
// from the first audio on and never runs out of audio; 0 before the first audio.
func (d *Delivery) PlayedOut() time.Duration { return d.playedOut }

// Text is the transcript up to a place in the audio: all words that begin
// before it. Text(d.Duration()) is the whole line.
func (d *Delivery) Text(to time.Duration) string {
	if to >= d.Duration() {
		return join(d.line.Words)
	}
	n := 0
	for n < len(d.line.Words) && d.line.Words[n].Start < to {
		n++
	}
	return join(d.line.Words[:n])
}

func join(words []Word) string {
	var b strings.Builder
	for _, w := range words {
		b.WriteString(w.Text)
	}
	return b.String()
}
