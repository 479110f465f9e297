package voice

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"voicegw/audio"
	simvoice "voicegw/sim/voice"
)

// Bounds of a library.
const (
	maxFiles     = 2000
	maxFile      = 256 << 20
	maxPCM       = 512 << 20 // in total, at the sent rate
	maxRecording = 10 * time.Minute
)

// ErrRecordings is wrapped by errors about recordings.
var ErrRecordings = errors.New("the recordings have problems")

// LibraryOptions choose the recordings.
type LibraryOptions struct {
	Rate int
	// Paths are WAV files, and folders of them, for Any. Without any, Any uses the built-in lines.
	Paths []string
	// Names are requested recordings: one of Paths, or a file in Dir.
	Names []string
	Dir   string
	Lines []string
	// Any says that Any will be called.
	Any bool
}

// Library holds recordings and spoken lines at one rate. It is immutable, so that conversations can share it.
type Library struct {
	any   []*Recording
	named map[string]*Recording // by name
	lines map[string]*Recording // by text
	bytes int
}

// LoadLibrary reads and converts all recordings. The error wraps ErrRecordings and names every invalid file.
func LoadLibrary(o LibraryOptions) (*Library, error) {
	l := &Library{named: map[string]*Recording{}, lines: map[string]*Recording{}}
	var problems []error
	files, err := findWAVs(o.Paths)
	problems = append(problems, err)
	for _, path := range files {
		name := filepath.Base(path)
		if l.named[name] != nil {
			problems = append(problems, fmt.Errorf("%s: another recording has the same name", path))
			continue
		}
		r, err := l.read(path, o.Rate)
		problems = append(problems, err)
		if err == nil {
			l.any = append(l.any, r)
			l.named[name] = r
		}
	}
	for _, name := range o.Names {
		if l.named[name] != nil {
			continue
		}
		r, err := l.read(filepath.Join(o.Dir, filepath.FromSlash(name)), o.Rate)
		problems = append(problems, err)
		l.named[name] = r
	}
	for _, text := range o.Lines {
		problems = append(problems, l.speak(text, "", o.Rate))
	}
	if o.Any && len(o.Paths) == 0 {
		problems = append(problems, l.builtIn(o.Rate))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("%w:\n%w", ErrRecordings, err)
	}
	return l, nil
}

// Any returns the n-th recording, modulo their number.
func (l *Library) Any(n int) *Recording { return l.any[n%len(l.any)] }

// Named returns a recording of LibraryOptions.Names.
func (l *Library) Named(name string) *Recording { return l.named[name] }

// Line returns the recording of a text in LibraryOptions.Lines.
func (l *Library) Line(text string) *Recording { return l.lines[text] }

// All returns the recordings and lines in a fixed order.
func (l *Library) All() []*Recording {
	all := slices.Clone(l.any)
	for _, m := range []map[string]*Recording{l.named, l.lines} {
		for _, r := range m {
			if !slices.Contains(all, r) {
				all = append(all, r)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *Recording) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func findWAVs(paths []string) ([]string, error) {
	var files []string
	var problems []error
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		before := len(files)
		for _, e := range entries {
			if !e.IsDir() && strings.EqualFold(filepath.Ext(e.Name()), ".wav") {
				files = append(files, filepath.Join(path, e.Name()))
			}
		}
		if len(files) == before {
			problems = append(problems, fmt.Errorf("%s: no .wav files in this folder", path))
		}
	}
	if len(files) > maxFiles {
		problems = append(problems, fmt.Errorf("%d recordings are too many; at most %d are allowed", len(files), maxFiles))
		files = nil
	}
	return files, errors.Join(problems...)
}

func (l *Library) read(path string, rate int) (*Recording, error) {
	clip, err := readClip(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r := &Recording{Name: filepath.Base(path), Source: Detected}
	notes := strings.TrimSuffix(path, filepath.Ext(path)) + ".json"
	data, err := os.ReadFile(notes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.Spans = detect(clip)
	case err != nil:
		return nil, err
	default:
		r.Source = Annotated
		if r.Spans, err = ParseAnnotation(data, clip.Duration()); err != nil {
			return nil, fmt.Errorf("%s: %w", notes, err)
		}
	}
	if len(r.Spans) == 0 {
		return nil, fmt.Errorf("%s: no speech detected; mark it in %s: {\"speech\":[{\"start_ms\":120,\"end_ms\":1840}]}",
			path, filepath.Base(notes))
	}
	if err := l.keep(r, clip, rate); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

func readClip(path string) (audio.Clip, error) {
	info, err := os.Stat(path)
	if err != nil {
		return audio.Clip{}, err
	}
	if info.Size() > maxFile {
		return audio.Clip{}, fmt.Errorf("%d bytes are too many; at most %d are allowed", info.Size(), maxFile)
	}
	clip, err := audio.ReadFile(path)
	if err == nil && clip.Duration() > maxRecording {
		err = fmt.Errorf("%s is too long; at most %s are allowed", clip.Duration(), maxRecording)
	}
	return clip, err
}

func (l *Library) keep(r *Recording, clip audio.Clip, rate int) error {
	clip, err := clip.Resample(rate)
	if err != nil {
		return err
	}
	r.Rate, r.PCM = clip.Rate, clip.PCM
	if l.bytes += len(r.PCM); l.bytes > maxPCM {
		return fmt.Errorf("all recordings together have more than %d MB at %d Hz", maxPCM>>20, rate)
	}
	return nil
}

func (l *Library) speak(text, timbre string, rate int) error {
	if l.lines[text] != nil {
		return nil
	}
	clip := audio.Clip{Rate: rate, PCM: simvoice.New(simvoice.Options{Rate: rate, Voice: timbre}).Speak(text).PCM}
	r := &Recording{Name: text, Source: Detected, Spans: detect(clip)}
	if len(r.Spans) == 0 {
		return fmt.Errorf("the built-in voice cannot pronounce %q; write English, or use a recording", text)
	}
	if err := l.keep(r, clip, rate); err != nil {
		return fmt.Errorf("%q: %w", text, err)
	}
	l.lines[text] = r
	return nil
}

var builtIns = []struct{ timbre, text string }{
	{"alloy", "Good morning. What are the opening hours today?"},
	{"Kore", "When does the robotics lab open?"},
	{"echo", "Could you tell me something about the design critique?"},
	{"shimmer", "I would like to know who runs the workshop on lighting."},
	{"Puck", "How long does it take to get an answer from you?"},
	{"marin", "Thank you. And what can I do there in the afternoon?"},
}

func (l *Library) builtIn(rate int) error {
	for _, b := range builtIns {
		if err := l.speak(b.text, b.timbre, rate); err != nil {
			return err
		}
		l.any = append(l.any, l.lines[b.text])
	}
	return nil
}

// Recording is immutable, so callers may send it concurrently.
type Recording struct {
	// Name is the file's name or the spoken text.
	Name string
	Rate int
	// PCM is 16-bit mono, read-only.
	PCM []byte
	// Spans are the user's speech, in order; there is at least one.
	Spans  []Span
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

// annotation is a file next to a recording with the positions of its speech. Unknown fields are ignored.
type annotation struct {
	Speech []struct {
		// In ms of the recording; may be fractional.
		StartMS *float64 `json:"start_ms"`
		EndMS   *float64 `json:"end_ms"`
	} `json:"speech"`
}

// annotationSlack is the most by which a rounded annotation may exceed its recording.
const annotationSlack = 10 * time.Millisecond

const maxSpans = 10_000

// ParseAnnotation parses the annotation of a recording of that length.
func ParseAnnotation(data []byte, length time.Duration) ([]Span, error) {
	var a annotation
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, fmt.Errorf("it is not {\"speech\":[{\"start_ms\":120,\"end_ms\":1840}]}: %w", err)
	}
	if len(a.Speech) == 0 {
		return nil, errors.New("it has no speech; give at least one of {\"speech\":[{\"start_ms\":120,\"end_ms\":1840}]}")
	}
	if len(a.Speech) > maxSpans {
		return nil, fmt.Errorf("%d stretches of speech are too many; at most %d are allowed", len(a.Speech), maxSpans)
	}
	var out []Span
	before := time.Duration(0)
	for i, s := range a.Speech {
		what := fmt.Sprintf("speech[%d]", i)
		if s.StartMS == nil || s.EndMS == nil {
			return nil, fmt.Errorf("%s needs start_ms and end_ms", what)
		}
		start, err := msOf(*s.StartMS, length)
		if err != nil {
			return nil, fmt.Errorf("%s.start_ms: %w", what, err)
		}
		end, err := msOf(*s.EndMS, length)
		if err != nil {
			return nil, fmt.Errorf("%s.end_ms: %w", what, err)
		}
		if start >= end {
			return nil, fmt.Errorf("%s ends at %v ms, before it begins", what, *s.EndMS)
		}
		if start < before {
			return nil, fmt.Errorf("%s begins at %v ms, before the previous one ends", what, *s.StartMS)
		}
		out = append(out, Span{start, end})
		before = end
	}
	return out, nil
}

func msOf(ms float64, length time.Duration) (time.Duration, error) {
	if math.IsNaN(ms) || ms < 0 || ms > float64((length+annotationSlack)/time.Millisecond)+1 {
		return 0, fmt.Errorf("%v is not within the recording, which lasts %d ms", ms, length.Milliseconds())
	}
	at := time.Duration(ms * float64(time.Millisecond))
	if at > length+annotationSlack {
		return 0, fmt.Errorf("%v is beyond the end of the recording, which lasts %d ms", ms, length.Milliseconds())
	}
	return min(at, length), nil
}
