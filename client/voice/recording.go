package voice

import (
	"time"

	"voicegw/audio"
)

// Recording is immutable, so callers may send it concurrently.
type Recording struct {
	// Name is the file's name or the spoken text.
	Name string
	// Rate is in Hz.
	Rate int
	// PCM is 16-bit mono, read-only.
	PCM []byte
	// Spans are the user's speech, in order; there is at least one.
	Spans []Span
	// Source is how the spans were found.
	Source Source
}

// Span is a stretch of speech, from its first voiced sample to its last.
type Span struct{ Start, End time.Duration }

// Source is how speech was found, as named in reports.
type Source string

// The sources.
const (
	Annotated Source = "annotation"
	Detected  Source = "detected"
)

// Duration is the length of the recording.
func (r *Recording) Duration() time.Duration { return audio.Duration(r.Rate, len(r.PCM)) }

// Onset is the start of the first span.
func (r *Recording) Onset() time.Duration { return r.Spans[0].Start }

// End is the end of the last span.
func (r *Recording) End() time.Duration { return r.Spans[len(r.Spans)-1].End }

// NewRecording makes a recording of a clip at a rate in Hz. Without detected speech, the whole clip counts as speech.
func NewRecording(name string, clip audio.Clip, rate int) (*Recording, error) {
	r := &Recording{Name: name, Source: Detected, Spans: detect(clip)}
	if len(r.Spans) == 0 {
		r.Spans = []Span{{End: clip.Duration()}}
	}
	clip, err := clip.Resample(rate)
	if err != nil {
		return nil, err
	}
	r.Rate, r.PCM = clip.Rate, clip.PCM
	return r, nil
}
