package checks

import (
	"bufio"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var recordings = flag.String("recordings", "", "a folder of recorded provider sessions for TestLag")

// TestLag prints the delay between the sound of a word and its transcript in recorded sessions (*.jsonl with one frame a
// line, in folders openai, gemini and live). For recordings without times it computes the length of the sound from the
// billed tokens: 20 a second at OpenAI, 25 at Google. It assumes that words are spread evenly over the sound.
func TestLag(t *testing.T) {
	if *recordings == "" {
		t.Skip("it needs -recordings")
	}
	files, err := filepath.Glob(filepath.Join(*recordings, "*", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatal("no recordings", err)
	}
	for _, file := range files {
		var r recording
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			r.take(t, lines.Bytes())
		}
		if err := f.Close(); err != nil || lines.Err() != nil {
			t.Fatal(err, lines.Err())
		}
		if lags := r.lags(); len(lags) > 0 {
			least, most := lags[0], lags[0]
			for _, l := range lags {
				least, most = min(least, l), max(most, l)
			}
			t.Logf("%-50s %-35s %2d pieces of words: %v to %v after their sound", filepath.Base(file), r.model, len(lags), least, most)
		}
	}
}

// recording is the output of one session.
type recording struct {
	model  string
	answer answerPieces // the current one
	done   []answerPieces
	live   []time.Duration // lags, from the times of a Live session
	first  int64           // time of the first sound of a Live session
}

type answerPieces struct {
	sounds int
	words  []string
	before []int // sounds before each of words
	length time.Duration
}

func (r *recording) word(text string) {
	r.answer.words, r.answer.before = append(r.answer.words, text), append(r.answer.before, r.answer.sounds)
}

func (r *recording) over(length time.Duration) {
	r.answer.length = length
	r.done, r.answer = append(r.done, r.answer), answerPieces{}
}

func (r *recording) take(t *testing.T, line []byte) {
	var f struct {
		Dir   string
		Data  json.RawMessage
		T     int64
		Event struct {
			Type, Delta string
			StartMS     int64 `json:"start_ms"`
			Session     struct{ Model string }
		}
	}
	if err := json.Unmarshal(line, &f); err != nil {
		t.Fatal(err)
	}
	switch {
	case f.Event.Type == "session.started":
		r.model = f.Event.Session.Model
	case f.Event.Type == "session.output_audio.delta" && r.first == 0:
		r.first = f.T
	case f.Event.Type == "session.output_transcript.delta":
		r.live = append(r.live, time.Duration(f.T-r.first-f.Event.StartMS)*time.Millisecond)
	case f.Data != nil && f.Data[0] == '{':
		r.frame(t, f.Data)
	}
}

func (r *recording) frame(t *testing.T, data []byte) {
	var m struct {
		Type, Delta string
		Session     struct{ Model string }
		Setup       struct{ Model string }
		Response    struct {
			Usage struct {
				Details struct {
					Audio int `json:"audio_tokens"`
				} `json:"output_token_details"`
			}
		}
		ServerContent struct {
			ModelTurn struct {
				Parts []struct {
					InlineData *struct{ MIMEType string }
				}
			}
			OutputTranscription struct{ Text string }
			TurnComplete        bool
		}
		UsageMetadata struct {
			ResponseTokensDetails []struct {
				Modality   string
				TokenCount int
			}
		}
	}
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	if name := m.Session.Model + m.Setup.Model; name != "" {
		r.model = strings.TrimPrefix(name, "models/")
	}
	for _, p := range m.ServerContent.ModelTurn.Parts {
		if p.InlineData != nil {
			r.answer.sounds++
		}
	}
	if text := m.ServerContent.OutputTranscription.Text; text != "" {
		r.word(text)
	}
	switch {
	case m.Type == "response.output_audio.delta":
		r.answer.sounds++
	case m.Type == "response.output_audio_transcript.delta":
		r.word(m.Delta)
	case m.Type == "response.done":
		r.over(time.Duration(m.Response.Usage.Details.Audio) * time.Second / 20)
	case m.ServerContent.TurnComplete:
		tokens := 0
		for _, d := range m.UsageMetadata.ResponseTokensDetails {
			if d.Modality == "AUDIO" {
				tokens += d.TokenCount
			}
		}
		r.over(time.Duration(tokens) * time.Second / 25)
	}
}

// lags returns, for each piece of words, the delay after the beginning of its sound.
func (r *recording) lags() []time.Duration {
	all := r.live
	for _, a := range r.done {
		characters, before := utf8.RuneCountInString(strings.Join(a.words, "")), 0
		for i, w := range a.words {
			came := a.length * time.Duration(a.before[i]) / time.Duration(max(a.sounds, 1))
			spoken := a.length * time.Duration(before) / time.Duration(characters)
			all = append(all, (came - spoken).Round(10*time.Millisecond))
			before += utf8.RuneCountInString(w)
		}
	}
	return all
}
