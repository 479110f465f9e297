package gemini

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"testing"
	"time"

	"voicegw/audio"
)

// tone is a sound that counts as speech, of a given length and loudness.
func tone(d time.Duration, amplitude float64) []byte {
	pcm := make([]byte, audio.Bytes(earRate, d))
	for i := range len(pcm) / 2 {
		at := float64(i) / earRate
		// Harmonics of a voice, and its rhythm.
		v := math.Sin(2*math.Pi*140*at) + 0.6*math.Sin(2*math.Pi*560*at) + 0.4*math.Sin(2*math.Pi*1400*at)
		binary.LittleEndian.PutUint16(pcm[2*i:], uint16(int16(amplitude*v/2)))
	}
	return pcm
}

func silence(d time.Duration) []byte { return make([]byte, audio.Bytes(earRate, d)) }

// TestDetectionParameters: the number of detected utterances follows a setup's detection parameters.
func TestDetectionParameters(t *testing.T) {
	pause := func(d time.Duration) []byte {
		return join3(join3(silence(time.Second), tone(600*time.Millisecond, 8000), silence(d)), tone(600*time.Millisecond, 8000), silence(2*time.Second))
	}
	click := join3(silence(time.Second), tone(40*time.Millisecond, 8000), silence(2*time.Second))
	quiet := join3(silence(time.Second), tone(time.Second, 460), silence(2*time.Second))
	tests := []struct {
		name, config string
		vertex       bool
		pcm          []byte
		want         int // utterances
	}{
		{"a pause is within speech", `{}`, false, pause(600 * time.Millisecond), 1},
		{"a long pause ends it", `{}`, false, pause(time.Second), 2},
		{"low end sensitivity waits longer", `{"endOfSpeechSensitivity":"END_SENSITIVITY_LOW"}`, false, pause(time.Second), 1},
		{"Vertex ends as soon by default", `{}`, true, pause(time.Second), 2},
		{"and waits longer if configured", `{"endOfSpeechSensitivity":"END_SENSITIVITY_LOW"}`, true, pause(time.Second), 1},
		{"Vertex is less sensitive to a start", `{}`, true, quiet, 0},
		{"unless configured", `{"startOfSpeechSensitivity":"START_SENSITIVITY_HIGH"}`, true, quiet, 1},
		{"silenceDurationMs short", `{"silenceDurationMs":200}`, false, pause(600 * time.Millisecond), 2},
		{"silenceDurationMs long", `{"silenceDurationMs":1500}`, false, pause(time.Second), 1},
		{"a click is not speech", `{}`, false, click, 0},
		{"prefixPaddingMs short", `{"prefixPaddingMs":20}`, false, click, 1},
		{"prefixPaddingMs long", `{"prefixPaddingMs":200}`, false, join3(silence(time.Second), tone(120*time.Millisecond, 8000), silence(2*time.Second)), 0},
		{"a quiet voice is detected", `{}`, false, quiet, 1},
		{"not with low start sensitivity", `{"startOfSpeechSensitivity":"START_SENSITIVITY_LOW"}`, false, quiet, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var c realtimeConfig
			if err := json.Unmarshal([]byte(tt.config), &c.Detection); err != nil {
				t.Fatal(err)
			}
			got := 0
			for _, s := range newEar(c, tt.vertex).hear(tt.pcm) {
				if !s.started {
					got++
				}
			}
			if got != tt.want {
				t.Errorf("%d utterances, want %d", got, tt.want)
			}
		})
	}
}

func join3(a, b, c []byte) []byte {
	out := append([]byte(nil), a...)
	return append(append(out, b...), c...)
}

// TestStreamEnd: the clock continues after a stream's end.
func TestStreamEnd(t *testing.T) {
	e := newEar(realtimeConfig{}, false)
	if got := e.streamEnd(); got != nil {
		t.Errorf("an end without speech: %+v", got)
	}
	for range 2 {
		if got := e.hear(join3(silence(time.Second), tone(time.Second, 8000), nil)); len(got) != 1 || !got[0].started {
			t.Fatalf("detected %+v", got)
		}
		got := e.streamEnd()
		if len(got) != 1 || got[0].started || got[0].duration < 900*time.Millisecond || got[0].duration > 1100*time.Millisecond {
			t.Errorf("the end: %+v", got)
		}
	}
	if got := e.base; got != 4*time.Second {
		t.Errorf("the clock is at %v, want 4s", got)
	}
}
