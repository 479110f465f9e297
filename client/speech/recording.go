package speech

import (
	"time"

	"voicegw/audio"
)

// Recording is something to say. It is immutable, so callers may send it concurrently; its PCM must
// not be written to.
type Recording struct {
	// Name is the file's name, or the text that is spoken.
	Name string
	// Rate is in Hz.
	Rate int
	// PCM is 16-bit mono.
	PCM []byte
	// Spans are where the user speaks, in order; there is at least one.
	Spans []Span
	// Source tells how the spans were found.
	Source Source
}

// Span is a stretch of speech, from its first voiced sample to its last.
type Span struct{ Start, End time.Duration }

// Source is the way in which speech was found.
type Source string

// The sources. The text is what a report calls them.
const (
	Annotated Source = "annotation"
	Detected  Source = "detected"
)

// Duration is how long the whole recording lasts.
func (r *Recording) Duration() time.Duration { return audio.Duration(r.Rate, len(r.PCM)) }

// Onset is where the first voiced sample is.
func (r *Recording) Onset() time.Duration { return r.Spans[0].Start }

// End is where the last voiced sample ends.
func (r *Recording) End() time.Duration { return r.Spans[len(r.Spans)-1].End }

// Of makes a recording of a clip, at a rate in Hz. A clip in which no speech is detected counts as
// speech as a whole.
func Of(name string, clip audio.Clip, rate int) (*Recording, error) {
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
