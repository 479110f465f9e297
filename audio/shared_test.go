package audio_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"voicegw/audio"
	"voicegw/internal/testutil"
)

// recording reads a clip from the folder of recordings next to the repository, or skips the test without that folder. It
// adds a second of silence, because a microphone stays on after the last word.
func recording(t *testing.T, name string) audio.Clip {
	t.Helper()
	dir, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
	}
	f, err := os.Open(filepath.Join(dir, "..", "shared", "audio", name))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no recording %s", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, err := audio.ReadWAV(f)
	if err != nil {
		t.Fatal(err)
	}
	c.PCM = slices.Concat(c.PCM, testutil.Silence(c.Rate, time.Second))
	return c
}

// heardRates are the possible rates of the recording in a session.
var heardRates = []int{8000, 16000, 24000, 48000}

// TestDetectorAgreesWithProvider: OpenAI's server_vad found the phrase at these times: with its default silence of 200 ms
// and prefix of 300 ms it reported speech from 1460 ms to 4256 ms in one recorded session and from 1556 ms to 4224 ms in
// another.
func TestDetectorAgreesWithProvider(t *testing.T) {
	clip := recording(t, "pydantic_my_name_is_marcelo_16k.wav")
	for _, rate := range heardRates {
		c, err := clip.Resample(rate)
		if err != nil {
			t.Fatal(err)
		}
		for _, silence := range []int{200, 500} {
			got := hear(audio.DetectorOptions{Rate: rate, SilenceMS: silence}, c.PCM)
			if len(got) != 2 {
				t.Errorf("%d Hz, silence %d: %+v, want one utterance", rate, silence, got)
				continue
			}
			if at := got[0].ReportMS; at < 1460-150 || at > 1460+150 {
				t.Errorf("%d Hz, silence %d: started at %d ms, the provider reports 1460", rate, silence, at)
			}
			if at, want := got[1].ReportMS, int64(4256-200+silence); at < want-150 || at > want+150 {
				t.Errorf("%d Hz, silence %d: stopped at %d ms, the provider reports %d", rate, silence, at, want)
			}
		}
	}
}

func TestDetectorHearsRecordings(t *testing.T) {
	for name, want := range map[string][][2]int64{ // onset and end of each utterance, measured by ear
		"azure_whats_the_weather_24k.wav": {{550, 2680}},
		"livekit_hello_world.wav":         {{250, 1030}},
		"livekit_weather_question.wav":    {{450, 1810}},
		// "And so my fellow Americans" / "ask not" / "what your country can do for you" / "ask what you can do for your
		// country". The noise of the hall rises after the last word, by 10 dB up to the end: that counts as speech.
		"jfk.wav": {{320, 2150}, {3260, 4330}, {5400, 7550}, {8180, 11000}},
	} {
		t.Run(name, func(t *testing.T) {
			clip := recording(t, name)
			for _, rate := range heardRates {
				c, err := clip.Resample(rate)
				if err != nil {
					t.Fatal(err)
				}
				got := hear(audio.DetectorOptions{Rate: rate}, c.PCM)
				if len(got) != 2*len(want) {
					t.Errorf("%d Hz: %+v, want %d utterances", rate, got, len(want))
					continue
				}
				for i, w := range want {
					start, stop := got[2*i].EdgeMS, got[2*i+1].EdgeMS
					if start < w[0]-200 || start > w[0]+50 || stop < w[1]-150 || stop > w[1]+150 {
						t.Errorf("%d Hz: detected from %d to %d ms, want %d to %d", rate, start, stop, w[0], w[1])
					}
				}
			}
		})
	}
}

func TestDetectorDecidesAsTheReferenceOnRecordings(t *testing.T) {
	for _, name := range []string{
		"azure_whats_the_weather_24k.wav", "jfk.wav", "livekit_hello_world.wav", "livekit_weather_question.wav", "pydantic_my_name_is_marcelo_16k.wav",
	} {
		t.Run(name, func(t *testing.T) {
			clip := recording(t, name)
			for _, rate := range heardRates {
				c, err := clip.Resample(rate)
				if err != nil {
					t.Fatal(err)
				}
				for _, level := range []float64{0, -30, -40, -50} {
					pcm := c.PCM
					if level != 0 {
						pcm = scaled(pcm, level)
					}
					opt := audio.DetectorOptions{Rate: rate}
					want := audio.ReferenceHear(opt, pcm)
					if len(want) == 0 && level == 0 {
						t.Errorf("%d Hz: the reference detects nothing", rate)
					}
					if diff := cmp.Diff(want, hear(opt, pcm)); diff != "" {
						t.Errorf("%d Hz at %v dBFS (-reference +detector):\n%s", rate, level, diff)
					}
				}
			}
		})
	}
}
