package openai

import (
	"slices"
	"strings"
	"testing"
	"time"

	"voicegw/sim/wire"
)

// TestLocalHabits: the events that each local server sends, or omits, for a session and a typed turn.
func TestLocalHabits(t *testing.T) {
	for name, test := range map[string]struct {
		first, without string
		with           []string
		shown          map[string]any // members of session.created, nil for missing ones
	}{
		"localai": {"session.created", "", []string{"conversation.item.added", "response.output_item.done"},
			map[string]any{"session.audio.input.format.rate": 24000.0, "session.expires_at": nil}},
		"speech-to-speech": {"session.created", "conversation.item.added conversation.item.done response.output_item.added response.content_part.added",
			[]string{"conversation.item.created"}, map[string]any{"session.instructions": wire.Instructions}},
		"nemotron": {"session.created conversation.created", "", []string{"conversation.item.added"}, map[string]any{
			"session.audio.input.format.rate": 16000.0, "session.audio.input.turn_detection.type": "server_vad",
			"session.audio.input.turn_detection.threshold": nil, "session.audio.input.transcription": nil}},
		"vllm-omni": {"session.created", "response.content_part.added", []string{"conversation.item.added"},
			map[string]any{"session.audio": nil, "session.instructions": nil, "session.model": "vllm-omni"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, wire.Options{}, func(r *rig) {
				c := r.connect("/v1/realtime?model="+name, "Authorization", "")
				greeting := c.take(time.Second)
				if got := kinds(greeting); got != test.first {
					t.Errorf("it greets with %s", got)
				}
				for path, want := range test.shown {
					if got := greeting[0].at(path); got != want {
						t.Errorf("%s is %v, want %v", path, got, want)
					}
				}
				c.send(strings.Replace(say, "%q", `"Hello."`, 1), `{"type":"response.create"}`)
				var sent []string
				deltas := 0
				for _, e := range c.take(time.Minute) {
					sent = append(sent, e.kind())
					if e.kind() == "response.output_audio.delta" {
						deltas++
					}
					if e.kind() == "response.done" && (e.at("response.usage") == nil) != (name != "nemotron") {
						t.Errorf("the usage is %v", e.at("response.usage"))
					}
				}
				for _, kind := range append(test.with, "response.done") {
					if !slices.Contains(sent, kind) {
						t.Errorf("no %s in %v", kind, sent)
					}
				}
				for _, kind := range strings.Fields(test.without) {
					if slices.Contains(sent, kind) {
						t.Errorf("it sends %s", kind)
					}
				}
				if (deltas == 1) != (name == "localai") || deltas == 0 {
					t.Errorf("the speech has %d pieces", deltas)
				}
			})
		})
	}
}

// TestStrictServer: settings that are not shown are refused, and the third refusal ends the session.
func TestStrictServer(t *testing.T) {
	bubble(t, wire.Options{}, func(r *rig) {
		c := r.connect("/v1/realtime?model=nemotron")
		c.take(time.Second)
		c.send(update(`"audio":{"input":{"turn_detection":{"type":"server_vad"}}},"instructions":"x"`))
		if got := kinds(c.take(time.Second)); got != "session.updated" {
			t.Errorf("settings that are shown: %s", got)
		}
		for range maxRefusals {
			c.send(update(`"audio":{"input":{"turn_detection":{"type":"server_vad","silence_duration_ms":300}}}`))
		}
		if e := find(c.take(time.Second), "error"); e.text("error.param") != "session.audio.input.turn_detection.silence_duration_ms" {
			t.Errorf("a setting that is not shown: %v", e)
		}
		if code, _ := c.closed(time.Second); code != 1008 {
			t.Errorf("closed with %d", code)
		}
	})
}

// TestUnloadable: an error comes instead of session.created. Compatible servers still need a key.
func TestUnloadable(t *testing.T) {
	bubble(t, wire.Options{}, func(r *rig) {
		c := r.connect("/v1/realtime?model=localai-broken")
		if got := c.take(time.Second); kinds(got) != "error" || got[0].text("error.code") != "model_load_error" {
			t.Errorf("it sends %v", got)
		}
		if _, resp, err := r.dial("/v1/realtime?model=gpt-realtime", "Authorization", ""); err == nil || resp.StatusCode != 401 {
			t.Errorf("without a key: %v", err)
		}
	})
}
