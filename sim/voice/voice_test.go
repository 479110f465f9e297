package voice

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"
)

const pangram = "The quick brown fox jumps over the lazy dog; at 14:30, Ada (who knows why?) said: \"Yes!\""

func samplesOf(pcm []byte) []float64 {
	out := make([]float64, len(pcm)/2)
	for i := range out {
		out[i] = float64(int16(binary.LittleEndian.Uint16(pcm[2*i:]))) / 32768
	}
	return out
}

func TestSameTextSameBytes(t *testing.T) {
	a := New(Options{}).Speak(pangram)
	v := New(Options{})
	v.Speak("Something else first.")
	if b := v.Speak(pangram); !bytes.Equal(a.PCM, b.PCM) {
		t.Fatal("the same text has different bytes")
	}
}

func TestOneVoiceManyGoroutines(t *testing.T) {
	v := New(Options{})
	want := v.Speak("Hello there.")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if got := v.Speak("Hello there."); !bytes.Equal(got.PCM, want.PCM) {
				t.Error("speaking at once changed the sound")
			}
		})
	}
	wg.Wait()
}

func TestWordTimes(t *testing.T) {
	for _, text := range []string{
		pangram, "Hello", "  two   spaces\n\tand a line  ", "— a dash first", "wait - what? 你好 ok", "$5 million for 5 km, e.g. on 2026-11-21 at 9am.",
		"ada@example.com or https://example.com/a?b=c", "*** bold *** text", "A B C", "don't; won't.",
	} {
		for _, rate := range []int{8000, 24000} {
			u := New(Options{Rate: rate}).Speak(text)
			checkWords(t, text, rate, u)
		}
	}
}

func checkWords(t *testing.T, text string, rate int, u Utterance) {
	t.Helper()
	if len(u.Words) == 0 {
		t.Errorf("%q: no words", text)
		return
	}
	var b strings.Builder
	if at := u.Words[0].Start; at != 0 {
		t.Errorf("%q: it begins at %v", text, at)
	}
	for i, w := range u.Words {
		b.WriteString(w.Text)
		end := length(u, rate)
		if i+1 < len(u.Words) {
			end = u.Words[i+1].Start
		}
		if end <= w.Start {
			t.Errorf("%q: word %q is at %v to %v", text, w.Text, w.Start, end)
		}
	}
	if b.String() != text {
		t.Errorf("the words are %q, want %q", b.String(), text)
	}
}

// length is the duration of the audio at a rate.
func length(u Utterance, rate int) time.Duration {
	return time.Duration(len(u.PCM)/2) * time.Second / time.Duration(rate)
}

func TestEmptyText(t *testing.T) {
	for _, text := range []string{"", " \n", "…", "!!!", "你好", "🙂", "\xff\xfe"} {
		u := New(Options{Rate: 16000}).Speak(text)
		if len(u.Words) != 0 || len(u.PCM) != 2*16000*emptyMS/1000 {
			t.Errorf("%q: %d words, %d bytes", text, len(u.Words), len(u.PCM))
		}
		if bytes.ContainsFunc(u.PCM, func(r rune) bool { return r != 0 }) {
			t.Errorf("%q is not silent", text)
		}
	}
}

func TestLongTextIsCutAtAWord(t *testing.T) {
	text := strings.Repeat("seven ", 1000)
	got := clip(text)
	if len(got) > maxText || !strings.HasPrefix(text, got) || !strings.HasSuffix(got, "seven") {
		t.Errorf("cut to %d characters, ending in %q", len(got), got[len(got)-10:])
	}
	if got := clip(strings.Repeat("ä", maxText+1)); len(got) != 2*maxText {
		t.Errorf("one long word: cut to %d bytes, want %d", len(got), 2*maxText)
	}
}

func TestLevel(t *testing.T) {
	for _, name := range []string{"", "marin", "Puck", "Aoede", "charon", "somebody"} {
		u := New(Options{Voice: name}).Speak(pangram)
		loudest, sum := 0.0, 0.0
		s := samplesOf(u.PCM)
		for _, x := range s {
			loudest = max(loudest, math.Abs(x))
			sum += x
		}
		if loudest > 0.7075 || loudest < 0.3 {
			t.Errorf("%q: peak is %.2f", name, loudest)
		}
		if dc := math.Abs(sum / float64(len(s))); dc > 0.001 {
			t.Errorf("%q: DC is %.4f", name, dc)
		}
		if rms := 20 * math.Log10(activeRMS(s)); rms < -21.5 || rms > -18.5 {
			t.Errorf("%q: level is %.1f dBFS, want about -20", name, rms)
		}
	}
}

// TestNoClicks: a step at the edge of a stop or of the whole would be audible as a click.
func TestNoClicks(t *testing.T) {
	s := samplesOf(New(Options{Rate: 48000}).Speak(pangram).PCM)
	if math.Abs(s[0]) > 0.001 || math.Abs(s[len(s)-1]) > 0.003 {
		t.Errorf("begins at %.4f and ends at %.4f", s[0], s[len(s)-1])
	}
	for i := 1; i < len(s); i++ {
		if d := math.Abs(s[i] - s[i-1]); d > 0.3 {
			t.Fatalf("jump of %.2f at %d ms", d, i*1000/48000)
		}
	}
}

func TestOptions(t *testing.T) {
	slow, fast := New(Options{Speed: 0.7}).Speak(pangram), New(Options{Speed: 1.4}).Speak(pangram)
	if r := float64(len(slow.PCM)) / float64(len(fast.PCM)); r < 1.7 || r > 2.3 {
		t.Errorf("half the speed takes %.2f times as long", r)
	}
	for rate, want := range map[int]int{0: 24000, 1: 8000, 1e9: 48000, 44100: 44100, 22049: 22025, 47999: 47975} {
		v := New(Options{Rate: rate})
		if v.rate != want {
			t.Errorf("rate %d gives %d, want %d", rate, v.rate, want)
		}
		v.Speak("Hello.")
	}
	if timbreOf("nobody") != timbreOf("NOBODY") || timbreOf("Puck") == timbreOf("alloy") {
		t.Error("voice names do not map as documented")
	}
}

// TestSpeed: about 165 words a minute, including pauses, within a fifth.
func TestSpeed(t *testing.T) {
	text := "The weather in London will be cold and windy tomorrow and the train to the station leaves at half past nine in the morning"
	u := New(Options{}).Speak(text)
	wpm := float64(len(u.Words)) / length(u, 24000).Minutes()
	if wpm < 130 || wpm > 200 {
		t.Errorf("%.0f words a minute", wpm)
	}
}

func FuzzSpeak(f *testing.F) {
	for _, s := range []string{pangram, "", "-", "$", "1/0", "99999999999999999999", "a.b.c@d.e", "é̂\u200d", "\xff", "''s", "s'", "1-2-3-4", "24:00:00", "$5 million", "5 km", "Dr.", "APIs", "x²", "°C", "l:a", "l:", "-1,234.5%", "T2026-11-21T"} {
		f.Add(s)
	}
	v := New(Options{Rate: 8000, Speed: 3})
	f.Fuzz(func(t *testing.T, text string) {
		u := v.Speak(text)
		var b strings.Builder
		for _, w := range u.Words {
			b.WriteString(w.Text)
		}
		if len(u.Words) > 0 && b.String() != clip(text) {
			t.Errorf("the words are %q, want %q", b.String(), clip(text))
		}
		if len(u.PCM) == 0 || len(u.PCM)%2 != 0 {
			t.Errorf("%d bytes", len(u.PCM))
		}
	})
}

func BenchmarkSpeak(b *testing.B) {
	v := New(Options{})
	text := "I have found three people who know about machine learning. Would you like to meet one of them on Friday at two thirty?"
	b.ReportAllocs()
	var audio time.Duration
	for b.Loop() {
		audio += length(v.Speak(text), 24000)
	}
	b.ReportMetric(audio.Seconds()/b.Elapsed().Seconds(), "x-realtime")
}

func TestCacheIsBounded(t *testing.T) {
	var c Cache
	if got, want := c.Speak("Hello.", Options{Rate: 8000}), New(Options{Rate: 8000}).Speak("Hello."); !bytes.Equal(got.PCM, want.PCM) || &c.Speak("Hello.", Options{Rate: 8000}).PCM[0] != &got.PCM[0] {
		t.Error("its audio differs, or was made again")
	}
	var last cacheKey
	for i := range 100 {
		last = cacheKey{text: fmt.Sprint(i)}
		c.keep(last, Utterance{PCM: make([]byte, 1<<20)})
		sum := 0
		for _, u := range c.kept {
			sum += len(u.PCM)
		}
		if _, ok := c.kept[last]; !ok || sum != c.bytes || sum > maxKept {
			t.Errorf("%d bytes are stored and %d counted", sum, c.bytes)
		}
	}
}
