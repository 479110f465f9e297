// Package voice is a small text-to-speech synthesizer for English: text in, PCM16 and word times out. The same text and
// options give the same bytes on every run of the same binary.
//
// Written words become spoken ones (normalize.go), and phones by lexicon.txt, else by rules.txt and a stress rule
// (dictionary.go, stress.go). Phones get variants, pauses, durations and pitch (prosody.go, duration.go), and
// become frames of formants and sources (phones.go, track.go, excite.go), then sound (synth.go), which package audio
// resamples.
//
// Scripts other than Latin are silent. Words that are mispronounced belong in lexicon.txt.
package voice

import (
	"hash/fnv"
	"strings"
	"sync"
	"time"

	"voicegw/audio"
)

// Options configure a voice. The zero value is a usable voice.
type Options struct {
	// Rate is the sample rate of the PCM in Hz, 8000 to 48000 and a multiple of 25. Zero means 24000; a value outside
	// the range is moved to the nearest limit, a value between two multiples to the lower one.
	Rate int
	// Speed multiplies the rate of speech: 1 is about 165 words a minute. Zero means 1; the range is 0.5 to 3.
	Speed float64
	// Voice names a timbre. Provider voice names such as "alloy", "marin", "Puck" and "Aoede" are known, in any case;
	// an unknown name is mapped to one of the timbres by its hash, so it always sounds the same. Empty is the default.
	Voice string
}

// Utterance is spoken text.
type Utterance struct {
	// PCM is 16-bit little-endian mono audio at Options.Rate.
	PCM []byte
	// Words are the words in order. Joined, their Texts are the spoken text; their times are contiguous and cover the
	// PCM. It is empty if nothing in the text can be pronounced; PCM is then a short silence.
	Words []Word
}

// Word is one written word and when it is heard.
type Word struct {
	// Text is the word as written, with the white space before it and the punctuation attached to it.
	Text string
	// Start is the offset from the beginning of the PCM. The word ends where the next one
	// begins: a pause after it belongs to it.
	Start time.Duration
}

// Voice speaks. It is immutable after New and may be used concurrently.
type Voice struct {
	rate   int
	speed  float64
	timbre timbre
}

// New makes a voice from opts. It cannot fail: values out of range are moved into it.
func New(opts Options) *Voice {
	v := &Voice{rate: 24000, speed: 1, timbre: timbreOf(opts.Voice)}
	if opts.Rate != 0 {
		v.rate = min(max(opts.Rate-opts.Rate%25, 8000), 48000)
	}
	if opts.Speed > 0 {
		v.speed = min(max(opts.Speed, 0.5), 3)
	}
	return v
}

// Speak synthesizes text. A text longer than 5,000 characters is cut at the last white space within them. What cannot
// be pronounced, such as scripts other than Latin, is silent. No input makes it fail.
func (v *Voice) Speak(text string) Utterance {
	written, words := prepare(text)
	if len(words) == 0 {
		return Utterance{PCM: make([]byte, 2*(v.rate*emptyMS/1000))}
	}
	sc := compose(words, v.speed*tempo)
	tr := newTrack(sc.segs)
	tune(tr, sc.phrases, v.timbre)
	mouth := newTract(v.timbre)
	samples := make([]float64, 0, len(tr.frames)*int(frameSamples))
	for i := range tr.frames {
		samples = mouth.run(&tr.frames[i], samples)
	}
	return Utterance{PCM: v.resample(toPCM(samples)), Words: timing(written, tr)}
}

// prepare cuts text into written words and the spoken words for each. Written words
// without a sound are joined to a neighbour, so that each remaining word is heard.
func prepare(text string) ([]string, []spoken) {
	written := split(clip(text))
	heard := make([]bool, len(written))
	var words []spoken
	for _, w := range normalize(written) {
		if len(pronounce(w.word)) == 0 {
			words = pause(words, w.brk)
			continue
		}
		words = append(words, w)
		heard[w.chunk] = true
	}
	if len(words) == 0 {
		return nil, nil
	}
	var out []string
	place := make([]int, len(written)) // in out
	before := ""
	for i, w := range written {
		switch {
		case heard[i]:
			out = append(out, before+w)
			before = ""
		case len(out) > 0:
			out[len(out)-1] += w
		default:
			before += w
		}
		place[i] = len(out) - 1
	}
	for i := range words {
		words[i].chunk = place[words[i].chunk]
	}
	return out, words
}

func (v *Voice) resample(pcm []byte) []byte {
	r, err := audio.NewResampler(synthRate, v.rate)
	if err != nil {
		panic(err) // New ensures a rate that the resampler accepts
	}
	return r.Flush(r.Process(nil, pcm))
}

func timing(written []string, tr *track) []Word {
	words := make([]Word, len(written))
	for i, text := range written {
		words[i].Text = text
	}
	next := 1
	for i := range tr.segs {
		if tr.segs[i].chunk == next {
			words[next].Start = time.Duration(tr.start[i] * float64(time.Millisecond))
			next++
		}
	}
	return words
}

var timbres = []timbre{
	{pitch: 110, size: 1.00, open: 0.50, tilt: 1.0, breath: 0.02, lively: 1.0},
	{pitch: 98, size: 0.96, open: 0.55, tilt: 1.1, breath: 0.01, lively: 0.9},
	{pitch: 125, size: 1.04, open: 0.60, tilt: 1.1, breath: 0.02, lively: 1.2},
	{pitch: 190, size: 1.15, open: 0.65, tilt: 1.0, breath: 0.04, lively: 1.0},
	{pitch: 172, size: 1.11, open: 0.65, tilt: 0.9, breath: 0.05, lively: 0.9},
	{pitch: 205, size: 1.17, open: 0.60, tilt: 1.1, breath: 0.03, lively: 1.2},
}

var named = map[string]int{
	"": 0, "alloy": 4, "ash": 0, "ballad": 1, "cedar": 1, "coral": 3, "echo": 0, "marin": 3, "sage": 4, "shimmer": 5, "verse": 2,
	"puck": 2, "charon": 1, "kore": 3, "fenrir": 0, "aoede": 5, "leda": 5, "orus": 0, "zephyr": 3,
}

func timbreOf(name string) timbre {
	name = strings.ToLower(name)
	if i, ok := named[name]; ok {
		return timbres[i]
	}
	h := fnv.New32a()
	h.Write([]byte(name)) // writing to a hash never fails
	return timbres[int(h.Sum32()%uint32(len(timbres)))]
}

const maxKept = 64 << 20

// Cache speaks and caches, because many conversations have the same lines. It is safe for concurrent use. The zero
// value is empty.
type Cache struct {
	mu    sync.Mutex // guards the following fields
	kept  map[cacheKey]Utterance
	bytes int
}

type cacheKey struct {
	text string
	opts Options
}

// Speak synthesises text. The result is shared and read-only.
func (c *Cache) Speak(text string, opts Options) Utterance {
	key := cacheKey{text, opts}
	c.mu.Lock()
	u, ok := c.kept[key]
	c.mu.Unlock()
	if !ok {
		u = New(opts).Speak(text)
		c.keep(key, u)
	}
	return u
}

func (c *Cache) keep(key cacheKey, u Utterance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil || c.bytes+len(u.PCM) > maxKept {
		c.kept, c.bytes = map[cacheKey]Utterance{}, 0
	}
	c.kept[key] = u
	c.bytes += len(u.PCM)
}
