package openai

import (
	"strings"
	"sync"
	"time"
	"unicode"

	"voicegw/audio"
	"voicegw/sim/pace"
	"voicegw/sim/scenario"
	"voicegw/sim/voice"
)

// maxSpeech bounds the spoken lines in the cache, in bytes.
const maxSpeech = 64 << 20

// wordTime is the pace of written words, as if they were spoken.
const wordTime = 60 * time.Millisecond

// speech speaks lines and caches them, because many sessions say the same. It may be used
// concurrently.
type speech struct {
	mu    sync.Mutex // guards the following fields
	kept  map[speechKey]pace.Line
	bytes int
}

type speechKey struct {
	text, voice, format string
	speed               float64
}

// line is the words and audio of a step, in the format of the response. The caller may
// change its words but not its audio.
func (s *speech) line(say scenario.Say, r *response) pace.Line {
	if r.inText {
		return written(say.Text)
	}
	f := r.obj.Audio.Output.Format
	if say.Text == "" {
		return pace.Line{Audio: silence(f, say.Silence), BytesPerMS: f.bytesPerMS()}
	}
	key := speechKey{say.Text, r.obj.Audio.Output.Voice, f.Type, r.speed}
	s.mu.Lock()
	line, ok := s.kept[key]
	s.mu.Unlock()
	if !ok {
		line = spoken(say.Text, key, f)
		s.keep(key, line)
	}
	line.Words = append([]pace.Word(nil), line.Words...)
	return line
}

func (s *speech) keep(key speechKey, line pace.Line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil || s.bytes+len(line.Audio) > maxSpeech {
		s.kept, s.bytes = map[speechKey]pace.Line{}, 0
	}
	s.kept[key] = line
	s.bytes += len(line.Audio)
}

// written is a line of text without audio.
func written(text string) pace.Line {
	var l pace.Line
	for i, t := range tokens(text) {
		l.Words = append(l.Words, pace.Word{Text: t, Start: time.Duration(i) * wordTime})
	}
	return l
}

// spoken synthesizes a line in a format.
func spoken(text string, key speechKey, f format) pace.Line {
	u := voice.New(voice.Options{Rate: f.hz(), Voice: key.voice, Speed: key.speed}).Speak(text)
	l := pace.Line{BytesPerMS: f.bytesPerMS()}
	for _, w := range u.Words {
		for _, t := range tokens(w.Text) {
			l.Words = append(l.Words, pace.Word{Text: t, Start: w.Start})
		}
	}
	l.Audio = f.encode(u.PCM)
	return l
}

// silence is silent audio in a format.
func silence(f format, d time.Duration) []byte {
	return f.encode(make([]byte, int(d.Milliseconds())*f.hz()/1000*audio.BytesPerSample))
}

// encode returns PCM of the format's rate in the format.
func (f format) encode(pcm []byte) []byte {
	switch f.Type {
	case "audio/pcmu":
		return audio.AppendULaw(nil, pcm)
	case "audio/pcma":
		return audio.AppendALaw(nil, pcm)
	}
	return pcm
}

// tokens cuts text into deltas as a model does: words with the space before
// them and the punctuation after them. Joined, they are the text.
func tokens(text string) []string {
	var out []string
	for text != "" {
		end := strings.IndexFunc(text[1:], unicode.IsSpace) + 1
		if end == 0 {
			end = len(text)
		}
		word := text[:end]
		text = text[end:]
		bare := strings.TrimRightFunc(word, unicode.IsPunct)
		if strings.TrimSpace(bare) != "" && bare != word {
			out = append(out, bare, word[len(bare):])
			continue
		}
		out = append(out, word)
	}
	return out
}
