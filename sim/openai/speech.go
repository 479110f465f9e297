package openai

import (
	"strings"
	"time"
	"unicode"

	"voicegw/audio"
	"voicegw/internal/openaiwire"
	"voicegw/sim/scenario"
	"voicegw/sim/voice"
	"voicegw/sim/wire"
)

// wordTime is the pace of written words, as if they were spoken.
const wordTime = 60 * time.Millisecond

// lineOf is the words and audio of a step, in the format of the response. The caller may
// change its words but not its audio.
func lineOf(lines *voice.Cache, say scenario.Say, r *response) voice.Line {
	if r.inText {
		return written(say.Text)
	}
	f := r.obj.Audio.Output.Format
	if say.Text == "" {
		quiet := make([]byte, int(say.Silence.Milliseconds())*f.Hz()/1000*audio.BytesPerSample)
		return voice.Line{Audio: f.Encode(new([]byte), quiet), BytesPerMS: f.BytesPerMS()}
	}
	return spoken(lines.Speak(say.Text, voice.Options{Rate: f.Hz(), Voice: r.obj.Audio.Output.Voice, Speed: r.speed}), f)
}

func written(text string) voice.Line {
	var l voice.Line
	for i, t := range tokens(text) {
		l.Words = append(l.Words, voice.Word{Text: t, Start: time.Duration(i) * wordTime})
	}
	return l
}

func spoken(u voice.Utterance, f openaiwire.Format) voice.Line {
	l := voice.Line{Audio: f.Encode(new([]byte), u.PCM), BytesPerMS: f.BytesPerMS()}
	for _, w := range u.Words {
		for _, t := range tokens(w.Text) {
			l.Words = append(l.Words, voice.Word{Text: t, Start: w.Start})
		}
	}
	return l
}

// tokens cuts text into deltas as a model does: words with the space before
// them and the punctuation after them. Joined, they are the text.
func tokens(text string) []string {
	var out []string
	for _, word := range wire.Words(text) {
		bare := strings.TrimRightFunc(word, unicode.IsPunct)
		if strings.TrimSpace(bare) != "" && bare != word {
			out = append(out, bare, word[len(bare):])
		} else if word != "" {
			out = append(out, word)
		}
	}
	return out
}
