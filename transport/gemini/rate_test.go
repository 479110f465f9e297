package gemini

import (
	"strings"
	"testing"

	"voicegw/transport"
)

// rates are MIME types and their sample rates; zero if the audio cannot be used.
var rates = map[string]int{
	"audio/pcm": 24000, "audio/pcm;rate=24000": 24000, "audio/pcm;rate=16000": 16000, "audio/pcm;rate=8000": 8000,
	"audio/pcm;rate=48000": 48000, "audio/pcm;rate=22050": 22050, "audio/pcm;rate=192000": 192000,
	"audio/pcm; rate=16000": 16000, `audio/PCM;rate="16000"`: 16000, "audio/pcm;rate=16000;channels=1": 16000,

	"audio/pcm;rate=0": 0, "audio/pcm;rate=": 0, "audio/pcm;rate=-16000": 0, "audio/pcm;rate=7999": 0, "audio/pcm;rate=192001": 0,
	"audio/pcm;rate=99999999999999999999": 0, "audio/pcm;rate=fast": 0, "audio/pcm;rate=16000;channels=2": 0, "audio/ogg;rate=16000": 0, "": 0,
}

// TestStatedRates: audio has the rate in its message, on the fast path and on the slow one, also when it changes within
// an answer; an unusable rate is one clear error.
func TestStatedRates(t *testing.T) {
	for mime, want := range rates {
		if got := speechRate(mime); got != want {
			t.Errorf("speechRate(%q) is %d, want %d", mime, got, want)
		}
		if got := plainRate([]byte(mime)); got != want && got != 0 {
			t.Errorf("plainRate(%q) is %d, want %d or 0", mime, got, want)
		}
	}
	c := &conn{t: new(Transport)}
	c.dialog.calls, c.dialog.async = &c.calls, &c.async
	hears := func(msg string) (at int, problem *transport.Error) {
		t.Helper()
		if err := c.decode(&frame{raw: []byte(msg)}); err != nil {
			t.Fatal(err)
		}
		for ev := c.dialog.Next(); ev != nil; ev = c.dialog.Next() {
			switch ev := ev.(type) {
			case *transport.AudioOut:
				if at = ev.Rate; at == 0 {
					at = outputRate
				}
			case transport.Problem:
				problem = ev.Err
			}
		}
		return at, problem
	}
	for _, rate := range []string{"24000", "16000", "16000", "48000", "24000", "8000"} {
		msg := strings.ReplaceAll(speech, "24000", rate)
		for _, msg := range []string{msg, msg, strings.ReplaceAll(msg, ";rate", "; rate")} {
			if at, problem := hears(msg); problem != nil || strings.TrimLeft(rate, "0") != rate || at != speechRate("audio/pcm;rate="+rate) {
				t.Errorf("audio at %s Hz arrived at %d Hz with %v", rate, at, problem)
			}
		}
	}
	at, problem := hears(strings.ReplaceAll(speech, "24000", "0"))
	if at != 0 || problem == nil || problem.Code != "audio_format" || !strings.Contains(problem.Error(), `"audio/pcm;rate=0"`) || !strings.Contains(problem.Error(), "8000 to 192000 Hz") {
		t.Errorf("audio at 0 Hz: played at %d Hz, reported %v", at, problem)
	}
}

// FuzzRates: the fast parser of a MIME type finds no rate that the complete one does not find.
func FuzzRates(f *testing.F) {
	for mime := range rates {
		f.Add(mime)
	}
	f.Fuzz(func(t *testing.T, mime string) {
		if quick := plainRate([]byte(mime)); quick != 0 && quick != speechRate(mime) {
			t.Errorf("%q: %d Hz quickly, %d Hz thoroughly", mime, quick, speechRate(mime))
		}
	})
}
