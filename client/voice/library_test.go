package voice

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"voicegw/audio"
	"voicegw/internal/testutil"
)

// sentence returns speech between silences, and its span.
func sentence(rate int, lead, length, tail time.Duration) (pcm []byte, span Span) {
	pcm = append(pcm, testutil.Silence(rate, lead)...)
	pcm = append(pcm, testutil.SpeechLike(rate, length, 3)...)
	pcm = append(pcm, testutil.Silence(rate, tail)...)
	return pcm, Span{lead, lead + length}
}

func writeWAV(t *testing.T, dir, name string, rate int, pcm []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := audio.WriteWAV(&b, rate, pcm); err != nil {
		t.Fatal(err)
	}
	return writeFile(t, dir, name, b.String())
}

func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, o LibraryOptions) *Library {
	t.Helper()
	if o.Rate == 0 {
		o.Rate = 16000
	}
	l, err := LoadLibrary(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestSpeechSpan: a tone is found to the sample although it begins and ends in the middle of the detector's frames.
func TestSpeechSpan(t *testing.T) {
	for _, rate := range []int{8000, 16000, 44100} {
		for _, c := range []struct{ lead, length time.Duration }{
			{300 * time.Millisecond, 700 * time.Millisecond},
			{303 * time.Millisecond, 704 * time.Millisecond},
			{517 * time.Millisecond, 1231 * time.Millisecond},
		} {
			pcm := testutil.Silence(rate, c.lead)
			pcm = append(pcm, voiced(rate, c.length)...)
			pcm = append(pcm, testutil.Silence(rate, 400*time.Millisecond)...)
			spans := detect(audio.Clip{Rate: rate, PCM: pcm})
			if len(spans) != 1 {
				t.Fatalf("%d Hz, %v: %v", rate, c, spans)
			}
			if off := (spans[0].Start - c.lead).Abs(); off > time.Millisecond {
				t.Errorf("%d Hz, %v: it begins at %v", rate, c, spans[0].Start)
			}
			if off := (spans[0].End - c.lead - c.length).Abs(); off > time.Millisecond {
				t.Errorf("%d Hz, %v: it ends at %v", rate, c, spans[0].End)
			}
		}
	}
}

// voiced returns a sound with the harmonics of a voice at 150 Hz and hard edges.
func voiced(rate int, d time.Duration) []byte {
	var harmonics [][]byte
	for h := 1; h <= 8; h++ {
		harmonics = append(harmonics, testutil.Tone(rate, float64(150*h), -20-3*float64(h), d))
	}
	return testutil.Mix(harmonics...)
}

func TestPausesInARecording(t *testing.T) {
	one, _ := sentence(16000, 300*time.Millisecond, time.Second, 600*time.Millisecond)
	two, _ := sentence(16000, 0, time.Second, 500*time.Millisecond)
	spans := detect(audio.Clip{Rate: 16000, PCM: append(one, two...)})
	if len(spans) != 2 {
		t.Fatalf("%v", spans)
	}
	r := Recording{Spans: spans}
	if off := (r.Onset() - 300*time.Millisecond).Abs(); off > 40*time.Millisecond {
		t.Errorf("it begins at %v", r.Onset())
	}
	if off := (r.End() - 2900*time.Millisecond).Abs(); off > 40*time.Millisecond {
		t.Errorf("it ends at %v", r.End())
	}
}

func TestFolderOfRecordings(t *testing.T) {
	dir := t.TempDir()
	pcm, span := sentence(44100, 200*time.Millisecond, time.Second, 300*time.Millisecond)
	writeWAV(t, dir, "b.wav", 44100, pcm)
	writeWAV(t, dir, "a.WAV", 8000, mustResample(t, 44100, 8000, pcm))
	writeFile(t, dir, "a.json", `{"speech":[{"start_ms":205.25,"end_ms":1190}],"text":"hello"}`)
	writeFile(t, dir, "readme.txt", "no recording")
	l := load(t, LibraryOptions{Paths: []string{dir}})
	if l.Any(0).Name != "a.WAV" || l.Any(1).Name != "b.wav" || l.Any(2) != l.Any(0) || l.Named("b.wav") != l.Any(1) {
		t.Errorf("they are %v", l.All())
	}
	a, b := l.Any(0), l.Any(1)
	if a.Source != Annotated || a.Onset() != 205250*time.Microsecond || a.End() != 1190*time.Millisecond {
		t.Errorf("a: %v %v", a.Source, a.Spans)
	}
	if b.Source != Detected || (b.End()-span.End).Abs() > 30*time.Millisecond {
		t.Errorf("b: %v %v", b.Source, b.Spans)
	}
	for _, r := range []*Recording{a, b} {
		if r.Rate != 16000 || (r.Duration()-1500*time.Millisecond).Abs() > 2*time.Millisecond {
			t.Errorf("%s: %d Hz, %v", r.Name, r.Rate, r.Duration())
		}
	}
}

func mustResample(t *testing.T, from, to int, pcm []byte) []byte {
	t.Helper()
	c, err := audio.Clip{Rate: from, PCM: pcm}.Resample(to)
	if err != nil {
		t.Fatal(err)
	}
	return c.PCM
}

func TestNamedRecordings(t *testing.T) {
	common, own := t.TempDir(), t.TempDir()
	pcm, _ := sentence(16000, 0, time.Second, 100*time.Millisecond)
	path := writeWAV(t, common, "x.wav", 16000, pcm)
	writeWAV(t, own, "y.wav", 16000, pcm)
	l := load(t, LibraryOptions{Paths: []string{path}, Names: []string{"x.wav", "y.wav"}, Dir: own, Lines: []string{"Hello there.", "Hello there."}})
	if l.Named("x.wav") != l.Any(0) || l.Named("y.wav") == nil || l.Named("y.wav") == l.Any(1) {
		t.Error("the names are mixed up")
	}
	if line := l.Line("Hello there."); line == nil || line.End() < 400*time.Millisecond || line.End() > line.Duration() {
		t.Errorf("the line: %+v", line)
	}
	if n := len(l.All()); n != 3 {
		t.Errorf("%d in total", n)
	}
}

func TestWithoutRecordings(t *testing.T) {
	l := load(t, LibraryOptions{Any: true, Rate: 8000})
	if l.Any(0) == l.Any(1) || l.Any(0) != l.Any(len(builtIns)) {
		t.Error("the built-in lines do not alternate")
	}
	again := load(t, LibraryOptions{Any: true, Rate: 8000})
	for i := range builtIns {
		r := l.Any(i)
		if r.Rate != 8000 || r.End() < time.Second || r.End() > 6*time.Second || len(r.Spans) == 0 || !bytes.Equal(r.PCM, again.Any(i).PCM) {
			t.Errorf("%s: %v of %v", r.Name, r.Spans, r.Duration())
		}
	}
}

func TestInvalidRecordings(t *testing.T) {
	dir, empty, silent := t.TempDir(), t.TempDir(), t.TempDir()
	writeFile(t, dir, "no.wav", "this is text")
	pcm, _ := sentence(16000, 0, time.Second, 0)
	writeWAV(t, dir, "bad.wav", 16000, pcm)
	writeFile(t, dir, "bad.json", `{"speech":[{"start_ms":0,"end_ms":9999}]}`)
	writeWAV(t, silent, "quiet.wav", 16000, testutil.Silence(16000, time.Second))
	twin := filepath.Join(t.TempDir(), "sub")
	if err := os.Mkdir(twin, 0o700); err != nil {
		t.Fatal(err)
	}
	ok := writeWAV(t, twin, "x.wav", 16000, pcm)
	_, err := LoadLibrary(LibraryOptions{Rate: 16000, Paths: []string{dir, empty, silent, ok, twin, "nowhere"}, Names: []string{"gone.wav"}, Dir: dir, Lines: []string{"你好"}})
	if !errors.Is(err, ErrRecordings) {
		t.Fatal(err)
	}
	for _, want := range []string{
		"no.wav: not a wav file", "bad.json: speech[0].end_ms: 9999 is not within", "no .wav files in this folder", "quiet.wav: no speech detected",
		"another recording has the same name", "nowhere: no such file", "gone.wav: stat", "cannot pronounce",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
}

func TestAnnotations(t *testing.T) {
	for text, want := range map[string]string{
		`{"speech":[{"start_ms":0,"end_ms":10.5},{"start_ms":10.5,"end_ms":1004}]}`: "[{0s 10.5ms} {10.5ms 1s}]",
		`{"speech":[{"start_ms":1,"end_ms":2}],"words":["hm"]}`:                     "[{1ms 2ms}]",
		`{"speech":[]}`:                          "it has no speech",
		`{}`:                                     "it has no speech",
		`[]`:                                     "it is not {",
		`{"speech":[{"start_ms":1}]}`:            "speech[0] needs start_ms and end_ms",
		`{"speech":[{"start_ms":5,"end_ms":5}]}`: "speech[0] ends at 5 ms, before it begins",
		`{"speech":[{"start_ms":5,"end_ms":8},{"start_ms":7,"end_ms":9}]}`: "speech[1] begins at 7 ms, before the previous one ends",
		`{"speech":[{"start_ms":-1,"end_ms":8}]}`:                          "speech[0].start_ms: -1 is not within",
		`{"speech":[{"start_ms":1,"end_ms":1e300}]}`:                       "speech[0].end_ms: 1e+300 is not within",
		`{"speech":[{"start_ms":1,"end_ms":1010.9}]}`:                      "is beyond the end",
		`{"speech":[{"start_ms":"a","end_ms":8}]}`:                         "it is not {",
		`{"speech":[{"start_ms":1010,"end_ms":1010}]}`:                     "before it begins",
	} {
		spans, err := ParseAnnotation([]byte(text), time.Second)
		got := fmt.Sprint(spans)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func FuzzParseAnnotation(f *testing.F) {
	f.Add([]byte(`{"speech":[{"start_ms":120,"end_ms":840},{"start_ms":1000.5,"end_ms":1840}]}`), int64(2000))
	f.Add([]byte(`{"speech":[{"start_ms":1e9,"end_ms":-0}]}`), int64(0))
	f.Fuzz(func(t *testing.T, data []byte, ms int64) {
		length := time.Duration(max(min(ms, 1<<30), 0)) * time.Millisecond
		spans, err := ParseAnnotation(data, length)
		if err != nil {
			return
		}
		before := time.Duration(0)
		for _, s := range spans {
			if s.Start < before || s.End <= s.Start || s.End > length {
				t.Fatalf("%v in %v", spans, length)
			}
			before = s.End
		}
		if len(spans) == 0 {
			t.Fatal("no spans and no error")
		}
	})
}

// TestNewRecording covers the conversion of the rate and a clip without speech.
func TestNewRecording(t *testing.T) {
	silence := audio.Clip{Rate: 8000, PCM: make([]byte, 8000)}
	r, err := NewRecording("quiet.wav", silence, 16000)
	if err != nil || r.Rate != 16000 || len(r.PCM) != 16000 || r.Onset() != 0 || r.End() != 500*time.Millisecond {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := NewRecording("odd.wav", audio.Clip{Rate: 100, PCM: make([]byte, 100)}, 16000); err == nil {
		t.Error("an impossible rate was accepted")
	}
}
