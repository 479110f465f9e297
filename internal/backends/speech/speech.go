// Package speech gives the audio of sentences that must be said in exactly the given words: from recordings, or from an
// endpoint like OpenAI's POST /v1/audio/speech (https://developers.openai.com/api/reference/resources/audio, read 2026-11-30),
// whose answers are cached.
package speech

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/singleflight"

	"voicegw/audio"
	"voicegw/config/setting"
	"voicegw/internal/bounded"
)

// Limits of sentences and of their audio.
const (
	MaxLength     = time.Minute // of a sentence
	MaxText       = 4 << 10     // bytes of the words of a recording
	MaxRecordings = 256         // of a folder

	minLength = 50 * time.Millisecond
	maxRate   = 48000
	minRate   = 8000
	maxBytes  = 16 << 20 // of a recording or an answer: a minute of 48 kHz stereo
	pcmRate   = 24000    // of the format pcm
	maxCached = 32 << 20 // bytes of audio
)

// OpenAI's model and voice.
const (
	DefaultModel = "gpt-4o-mini-tts"
	DefaultVoice = "alloy"
)

// Recording is a recorded sentence.
type Recording struct {
	Text string
	Clip audio.Clip
}

// Endpoint is a speech endpoint.
type Endpoint struct {
	BaseURL, APIKey string        // BaseURL is its address with /v1; empty without one
	Model, Voice    string        // empty means DefaultModel and DefaultVoice
	Format          string        // "wav" (also if empty) or "pcm": 16 bits, mono, 24 kHz
	Timeout         time.Duration // of a request; zero means setting.SpeechTimeout
	Client          *http.Client  // nil means the default
}

// Speaker gives the audio of sentences. It may be used concurrently.
type Speaker struct {
	recordings map[string]audio.Clip
	endpoint   Endpoint
	client     *http.Client
	asking     singleflight.Group

	mu     sync.Mutex // guards the following fields
	cached []cached   // the latest used last
	bytes  int
}

type cached struct {
	key  [sha256.Size]byte
	clip audio.Clip
}

// ErrNone is the error for a sentence without a recording if there is no endpoint.
var ErrNone = errors.New("the sentence has no recording, and no speech endpoint is configured (exact.base_url)")

// New returns a Speaker. It does not connect.
func New(recordings []Recording, e Endpoint) *Speaker {
	e.Model, e.Voice, e.Format = cmp.Or(e.Model, DefaultModel), cmp.Or(e.Voice, DefaultVoice), cmp.Or(e.Format, "wav")
	e.Timeout = cmp.Or(e.Timeout, setting.SpeechTimeout)
	s := &Speaker{recordings: map[string]audio.Clip{}, endpoint: e,
		client: bounded.Client(e.Client, bounded.Limits{Service: "the speech endpoint", Bytes: maxBytes,
			Idle: e.Timeout, Whole: e.Timeout})}
	for _, r := range recordings {
		s.recordings[normal(r.Text)] = r.Clip
	}
	return s
}

// normal ignores how a text is broken into lines.
func normal(text string) string { return strings.Join(strings.Fields(text), " ") }

// Speak returns the audio of a sentence, which is shared and read-only.
func (s *Speaker) Speak(ctx context.Context, text string) (audio.Clip, error) {
	if clip, ok := s.recordings[normal(text)]; ok {
		return clip, nil
	}
	if s.endpoint.BaseURL == "" {
		return audio.Clip{}, ErrNone
	}
	key := sha256.Sum256([]byte(s.endpoint.Model + "\x00" + s.endpoint.Voice + "\x00" + text))
	if clip, ok := s.lookUp(key); ok {
		return clip, nil
	}
	// The answer is for all who wait for these words, so it does not end with one of them.
	answer := s.asking.DoChan(string(key[:]), func() (any, error) {
		clip, err := s.ask(context.WithoutCancel(ctx), text)
		if err == nil {
			s.keep(key, clip)
		}
		return clip, err
	})
	select {
	case r := <-answer:
		clip, _ := r.Val.(audio.Clip)
		return clip, r.Err
	case <-ctx.Done():
		return audio.Clip{}, ctx.Err()
	}
}

func (s *Speaker) lookUp(key [sha256.Size]byte) (audio.Clip, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.cached, func(c cached) bool { return c.key == key })
	if i < 0 {
		return audio.Clip{}, false
	}
	c := s.cached[i]
	s.cached = append(slices.Delete(s.cached, i, i+1), c)
	return c.clip, true
}

func (s *Speaker) keep(key [sha256.Size]byte, clip audio.Clip) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cached = append(s.cached, cached{key, clip})
	for s.bytes += len(clip.PCM); s.bytes > maxCached; {
		s.bytes -= len(s.cached[0].clip.PCM)
		s.cached = slices.Delete(s.cached, 0, 1)
	}
}

func (s *Speaker) ask(ctx context.Context, text string) (audio.Clip, error) {
	e := &s.endpoint
	body, err := json.Marshal(map[string]string{"model": e.Model, "voice": e.Voice, "input": text, "response_format": e.Format})
	if err != nil {
		return audio.Clip{}, fmt.Errorf("speech: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(e.BaseURL, "/")+"/audio/speech", bytes.NewReader(body))
	if err != nil {
		return audio.Clip{}, fmt.Errorf("speech: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	if e.APIKey != "" {
		r.Header.Set("Authorization", "Bearer "+e.APIKey)
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return audio.Clip{}, fmt.Errorf("speech: %w", bounded.Bare(err))
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	if answer.StatusCode != http.StatusOK {
		return audio.Clip{}, fmt.Errorf("speech: the endpoint answered %d", answer.StatusCode)
	}
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return audio.Clip{}, fmt.Errorf("speech: %w", bounded.Bare(err))
	}
	clip := audio.Clip{Rate: pcmRate, PCM: data[:len(data)/audio.BytesPerSample*audio.BytesPerSample]}
	if e.Format == "wav" {
		clip, err = audio.ReadWAVLimit(bytes.NewReader(data), maxBytes)
	}
	if err == nil {
		err = check(clip)
	}
	if err != nil {
		return audio.Clip{}, fmt.Errorf("speech: the endpoint's answer: %w", err)
	}
	return clip, nil
}

// check refuses audio that cannot be a sentence.
func check(clip audio.Clip) error {
	switch length := clip.Duration(); {
	case clip.Rate < minRate || clip.Rate > maxRate:
		return fmt.Errorf("it has %d Hz; it must have %d to %d Hz", clip.Rate, minRate, maxRate)
	case length < minLength || length > MaxLength:
		return fmt.Errorf("it lasts %s; it must last %s to %s", length.Round(time.Millisecond), minLength, MaxLength)
	case !slices.ContainsFunc(clip.PCM, func(b byte) bool { return b != 0 }):
		return errors.New("it is silent")
	}
	return nil
}

// Load reads the recordings of a folder: each *.wav, with its words in a *.txt of the same name. The error joins all problems.
func Load(folder fs.FS) ([]Recording, error) {
	_, err := fs.ReadDir(folder, ".")
	names, bad := fs.Glob(folder, "*.wav") // ignores errors of the folder
	if err = cmp.Or(err, bad); err != nil {
		return nil, fmt.Errorf("list the recordings: %w", err)
	}
	if len(names) == 0 || len(names) > MaxRecordings {
		return nil, fmt.Errorf("the folder has %d files *.wav; it must have 1 to %d", len(names), MaxRecordings)
	}
	var all []Recording
	var problems []error
	for _, name := range names {
		r, err := load(folder, name)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
			continue
		}
		all = append(all, r)
	}
	return all, errors.Join(problems...)
}

func load(folder fs.FS, name string) (r Recording, err error) {
	f, err := folder.Open(name)
	if err != nil {
		return r, fmt.Errorf("open: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	if r.Clip, err = audio.ReadWAVLimit(f, maxBytes); err == nil {
		err = check(r.Clip)
	}
	if err != nil {
		return r, err
	}
	words := strings.TrimSuffix(name, path.Ext(name)) + ".txt"
	text, err := fs.ReadFile(folder, words)
	r.Text = normal(string(text))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, fmt.Errorf("its words are missing; write them into %s", words)
	case err != nil:
		return r, fmt.Errorf("read its words: %w", err)
	case r.Text == "" || len(text) > MaxText || !utf8.Valid(text):
		return r, fmt.Errorf("%s must have 1 to %d bytes of UTF-8", words, MaxText)
	}
	return r, nil
}
