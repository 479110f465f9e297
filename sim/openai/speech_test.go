package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"voicegw/audio"
	"voicegw/internal/openaiwire"
	"voicegw/sim/voice"
	"voicegw/sim/wire"
)

const (
	created   = "response.created"
	done      = "response.done"
	turnOrder = "input_audio_buffer.speech_stopped input_audio_buffer.committed conversation.item.added conversation.item.done response.created"
)

func count(list []received, kind string) int {
	n := 0
	for _, e := range list {
		if e.kind() == kind {
			n++
		}
	}
	return n
}

// audioOf is the audio of all deltas, decoded.
func audioOf(list []received) []byte {
	var out []byte
	for _, e := range list {
		if e.kind() == "response.output_audio.delta" {
			b, err := base64.StdEncoding.DecodeString(e.text("delta"))
			if err != nil {
				return nil
			}
			out = append(out, b...)
		}
	}
	return out
}

func update(session string) string {
	return `{"type":"session.update","session":{"type":"realtime",` + session + `}}`
}

const story = `
rules:
  - when: {utterance: any}
    do: [{say: This answer is so long that anybody who wants to can interrupt it long before it comes to its end and that is the point of it.}]
  - when: {text: any}
    do: [{say: This answer is so long that anybody who wants to can interrupt it long before it comes to its end and that is the point of it.}]
`

func TestSpeechInterruptsTheAnswer(t *testing.T) {
	bubble(t, wire.Options{Scenario: script(t, story), Speed: 1}, func(r *rig) {
		c := r.open()
		c.speak(sound(0, 2*time.Second, time.Second), true)
		c.until("response.output_audio.delta")
		c.speak(sound(0, 2*time.Second, 0), true)
		got := c.until(done)
		i := strings.Index(kinds(got), "input_audio_buffer.speech_started")
		want := "input_audio_buffer.speech_started response.output_audio.done response.output_audio_transcript.done response.content_part.done conversation.item.done response.output_item.done response.done"
		if i < 0 || kinds(got)[i:] != want {
			t.Fatalf("got %s", kinds(got))
		}
		end := got[len(got)-1].event
		if end.text("response.status") != "cancelled" || end.text("response.status_details.reason") != "turn_detected" ||
			end.text("response.output.0.status") != "incomplete" {
			t.Errorf("response.done %v", end)
		}
		// The transcript of the part that was sent, and its usage.
		if words := end.text("response.output.0.content.0.transcript"); !strings.HasPrefix(words, "This answer") || strings.HasSuffix(words, "of it.") {
			t.Errorf("transcript %q", words)
		}
		if end.num("response.usage.output_token_details.audio_tokens") == 0 {
			t.Error("no usage of the spoken part")
		}
		if later := c.take(500 * time.Millisecond); count(later, "response.output_audio.delta") > 0 {
			t.Error("audio after the interruption")
		}
	})
}

func TestInterruptResponseOff(t *testing.T) {
	bubble(t, wire.Options{Scenario: script(t, story), Speed: 1}, func(r *rig) {
		c := r.open()
		c.send(update(`"audio":{"input":{"turn_detection":{"type":"server_vad","interrupt_response":false}}}`))
		c.speak(sound(0, 2*time.Second, time.Second), true)
		c.until("response.output_audio.delta")
		c.speak(sound(0, 1500*time.Millisecond, time.Second), true)
		got := c.take(100 * time.Millisecond)
		if !strings.Contains(kinds(got), "speech_started") || strings.Contains(kinds(got), done) {
			t.Errorf("got %s", kinds(got))
		}
		if e := find(got, "error"); e.text("error.code") != "conversation_already_has_active_response" {
			t.Errorf("the second turn's response: %v", e)
		}
	})
}

func TestTurnDetectionOff(t *testing.T) {
	bubble(t, wire.Options{}, func(r *rig) {
		c := r.open()
		c.send(update(`"audio":{"input":{"turn_detection":null,"transcription":{"model":"whisper-1"}}}`))
		c.send(`{"type":"input_audio_buffer.commit","event_id":"e1"}`)
		c.speak(sound(500*time.Millisecond, 2*time.Second, 500*time.Millisecond), false)
		got := c.take(5 * time.Second)
		e := find(got, "error")
		if e.text("error.message") != "Error committing input audio buffer: buffer too small. Expected at least 100ms of audio, but buffer only has 0.00ms of audio." ||
			e.text("error.event_id") != "e1" || e.text("error.code") != "input_audio_buffer_commit_empty" {
			t.Errorf("empty commit: %v", e)
		}
		if strings.Contains(kinds(got), "speech_started") {
			t.Error("speech was detected with turn detection off")
		}
		c.send(`{"type":"input_audio_buffer.commit"}`)
		got = c.take(5 * time.Second)
		if k := kinds(got); k != "input_audio_buffer.committed conversation.item.added conversation.item.done conversation.item.input_audio_transcription.delta conversation.item.input_audio_transcription.completed" {
			t.Errorf("commit: %s", k)
		}
		if e := find(got, "conversation.item.input_audio_transcription.completed"); e.num("usage.seconds") != 3 || e.text("usage.type") != "duration" {
			t.Errorf("usage %v", e)
		}
		c.send(`{"type":"response.create"}`)
		got = c.until(done)
		if words := find(got, "response.output_audio_transcript.done").text("transcript"); !strings.Contains(words, "two seconds") {
			t.Errorf("answer %q", words)
		}
		c.speak(sound(0, time.Second, 0), false)
		c.send(`{"type":"input_audio_buffer.clear"}`, `{"type":"input_audio_buffer.commit"}`)
		if got := c.take(time.Second); kinds(got) != "input_audio_buffer.cleared error" {
			t.Errorf("clear: %s", kinds(got))
		}
	})
}

func TestSemanticVADAndNoAutomaticResponse(t *testing.T) {
	bubble(t, wire.Options{}, func(r *rig) {
		c := r.open()
		c.send(update(`"audio":{"input":{"turn_detection":{"type":"semantic_vad","eagerness":"low","create_response":false}}}`))
		e := find(c.until("session.updated"), "session.updated")
		if e.text("session.audio.input.turn_detection.eagerness") != "low" || e.at("session.audio.input.turn_detection.interrupt_response") != true ||
			e.at("session.audio.input.turn_detection.threshold") != nil {
			t.Errorf("turn detection %v", e.at("session.audio.input.turn_detection"))
		}
		c.speak(sound(0, 2*time.Second, 900*time.Millisecond), true)
		if got := c.take(0); strings.Contains(kinds(got), "stopped") {
			t.Error("low eagerness did not wait")
		}
		c.speak(sound(0, 0, time.Second), true)
		got := c.take(time.Second)
		if strings.Contains(kinds(got), created) || !strings.Contains(kinds(got), "committed") {
			t.Errorf("got %s", kinds(got))
		}
		c.send(update(`"audio":{"input":{"turn_detection":{"type":"server_vad"}}}`))
		e = find(c.until("session.updated"), "session.updated")
		if e.num("session.audio.input.turn_detection.silence_duration_ms") != 200 || e.at("session.audio.input.turn_detection.create_response") != true {
			t.Errorf("another type begins with its defaults: %v", e.at("session.audio.input.turn_detection"))
		}
	})
}

func TestAudioClockAndUsageRates(t *testing.T) {
	pcm := wav(t, "audio/pydantic_my_name_is_marcelo_16k.wav")
	bubble(t, wire.Options{}, func(r *rig) {
		c := r.open()
		c.speak(pcm, false) // faster than real time: the audio is the clock
		got := c.until(done)
		start := find(got, "input_audio_buffer.speech_started").num("audio_start_ms")
		end := find(got, "input_audio_buffer.speech_stopped").num("audio_end_ms")
		// The provider reported 1460 and 4256 for this recording.
		if start < 1260 || start > 1660 || end < 4056 || end > 4456 {
			t.Errorf("speech from %g to %g ms", start, end)
		}
		u := find(got, done)
		if in := u.num("response.usage.input_token_details.audio_tokens"); in != float64(int(end-start)/100) {
			t.Errorf("%g audio tokens in for %g ms", in, end-start)
		}
		spokenMS := len(audioOf(got)) / 48
		if out := u.num("response.usage.output_token_details.audio_tokens"); int(out) != (spokenMS+49)/50 {
			t.Errorf("%g audio tokens out for %d ms", out, spokenMS)
		}
		total := u.num("response.usage.total_tokens")
		if total != u.num("response.usage.input_tokens")+u.num("response.usage.output_tokens") || total == 0 {
			t.Errorf("usage does not add up: %v", u.at("response.usage"))
		}
	})
}

func TestG711(t *testing.T) {
	for _, kind := range []string{"audio/pcmu", "audio/pcma"} {
		bubble(t, wire.Options{}, func(r *rig) {
			c := r.open()
			c.send(update(fmt.Sprintf(`"audio":{"input":{"format":{"type":%q}},"output":{"format":{"type":%q}}}`, kind, kind)))
			if e := find(c.until("session.updated"), "session.updated"); e.text("session.audio.input.format.type") != kind || e.at("session.audio.input.format.rate") != nil {
				t.Errorf("format %v", e.at("session.audio.input.format"))
			}
			rs, err := audio.NewResampler(24000, 8000)
			if err != nil {
				t.Fatal(err)
			}
			pcm := rs.Flush(rs.Process(nil, sound(300*time.Millisecond, 2*time.Second, time.Second)))
			encoded := audio.AppendULaw(nil, pcm)
			if kind == "audio/pcma" {
				encoded = audio.AppendALaw(nil, pcm)
			}
			c.send(`{"type":"input_audio_buffer.append","audio":"` + base64.StdEncoding.EncodeToString(encoded) + `"}`)
			got := c.until(done)
			if !strings.Contains(kinds(got), turnOrder) {
				t.Fatalf("got %s", kinds(got))
			}
			out := audioOf(got)
			tokens := find(got, done).num("response.usage.output_token_details.audio_tokens")
			if len(out) == 0 || int(tokens) != (len(out)/8+49)/50 {
				t.Errorf("%d bytes of audio, %g tokens", len(out), tokens)
			}
		})
	}
}

func TestTruncation(t *testing.T) {
	bubble(t, wire.Options{Scenario: script(t, story)}, func(r *rig) {
		c := r.open()
		c.send(`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}}`, `{"type":"response.create"}`)
		got := c.until(done)
		id := find(got, done).text("response.output.0.id")
		length := len(audioOf(got)) / 48
		send := func(ms int) []received {
			c.send(fmt.Sprintf(`{"type":"conversation.item.truncate","event_id":"t","item_id":%q,"content_index":0,"audio_end_ms":%d}`, id, ms))
			return c.take(50 * time.Millisecond)
		}
		if e := find(send(length+1000), "error"); e.text("error.message") != fmt.Sprintf("Audio content of %dms is already shorter than %dms", length, length+1000) {
			t.Errorf("past the end: %v", e)
		}
		if e := find(send(1200), "conversation.item.truncated"); e.num("audio_end_ms") != 1200 || e.text("item_id") != id {
			t.Errorf("truncated %v", e)
		}
		if e := find(send(1300), "error"); e.text("error.message") != "Audio content of 1200ms is already shorter than 1300ms" {
			t.Errorf("it can only become shorter: %v", e)
		}
		c.send(fmt.Sprintf(`{"type":"conversation.item.retrieve","item_id":%q}`, id))
		e := find(c.take(50*time.Millisecond), "conversation.item.retrieved")
		data, _ := base64.StdEncoding.DecodeString(e.text("item.content.0.audio"))
		if len(data) != 1200*48 || e.at("item.content.0.transcript") != nil {
			t.Errorf("%d bytes of audio, transcript %v", len(data), e.at("item.content.0.transcript"))
		}
		if held := r.h.held.Load(); held != 1200*48 {
			t.Errorf("%d bytes of audio are counted", held)
		}
	})
}

func TestIdleTimeout(t *testing.T) {
	bubble(t, wire.Options{Scenario: script(t, `{rules: [{when: {text: any}, do: [{say: Well then.}]}]}`)}, func(r *rig) {
		c := r.open()
		c.send(update(`"audio":{"input":{"transcription":{"model":"gpt-realtime-whisper"},"turn_detection":{"type":"server_vad","idle_timeout_ms":5000}}}`))
		c.send(`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}}`, `{"type":"response.create"}`)
		c.until(done)
		if got := c.take(4 * time.Second); len(got) > 0 {
			t.Errorf("too early: %s", kinds(got))
		}
		got := c.until(done)
		if k := kinds(got); !strings.HasPrefix(k, "input_audio_buffer.timeout_triggered input_audio_buffer.committed conversation.item.added conversation.item.done response.created") {
			t.Errorf("got %s", k)
		}
		got = append(got, c.take(time.Second)...)
		if e := find(got, "conversation.item.input_audio_transcription.completed"); e.text("transcript") != "" || e.at("usage.seconds") != 0.0 {
			t.Errorf("transcript of silence: %v", e)
		}
	})
}

func TestSpeechEndsTheIdleTimeout(t *testing.T) {
	bubble(t, wire.Options{}, func(r *rig) {
		c := r.open()
		c.send(update(`"audio":{"input":{"turn_detection":{"type":"server_vad","idle_timeout_ms":5000,"create_response":false}}}`), `{"type":"response.create"}`)
		c.until(done)
		c.take(4 * time.Second)
		c.speak(sound(0, 2*time.Second, time.Second), true)
		if got := c.take(20 * time.Second); strings.Contains(kinds(got), "timeout") || !strings.Contains(kinds(got), "speech_stopped") {
			t.Errorf("got %s", kinds(got))
		}
	})
}

func TestTranscriptionThatFails(t *testing.T) {
	bubble(t, wire.Options{}, func(r *rig) {
		c := r.connect("/openai/v1/realtime?model=mine")
		c.send(update(`"audio":{"input":{"transcription":{"model":"not-deployed"}}}`))
		c.speak(sound(0, 2*time.Second, time.Second), false)
		got := c.until(done)
		e := find(got, "conversation.item.input_audio_transcription.failed")
		id := find(got, "input_audio_buffer.committed").text("item_id")
		if e.text("error.code") != "DeploymentNotFound" || e.text("error.message") != "Input transcription failed for item '"+id+"'." || e.text("item_id") != id {
			t.Errorf("got %v", e)
		}
		c.send(update(`"instructions":"x"`), update(`"instructions":""`))
		got = c.take(100 * time.Millisecond)
		if e := got[len(got)-1]; e.text("session.instructions") != wire.Instructions {
			t.Errorf("empty instructions are %q", e.text("session.instructions"))
		}
	})
}

func TestPCMOfALineIsComplete(t *testing.T) {
	bubble(t, wire.Options{Speed: -1, FirstAudioMS: -1, ChunkMS: 40}, func(r *rig) {
		c := r.open()
		c.send(`{"type":"response.create"}`)
		got := c.until(done)
		want := spoken(voice.New(voice.Options{Voice: "alloy"}).Speak("Hello! I am a simulated voice model. Say something, or type a question."), openaiwire.Format{Type: "audio/pcm", Rate: 24000})
		if string(audioOf(got)) != string(want.Audio) {
			t.Errorf("%d bytes sent, %d spoken", len(audioOf(got)), len(want.Audio))
		}
		var words string
		for _, e := range got {
			if e.kind() == "response.output_audio_transcript.delta" {
				words += e.text("delta")
				if e.text("obfuscation") == "" || (len(e.text("delta"))+len(e.text("obfuscation")))%16 != 0 {
					t.Errorf("obfuscation %q of %q", e.text("obfuscation"), e.text("delta"))
				}
			}
		}
		if words != find(got, "response.output_audio_transcript.done").text("transcript") {
			t.Errorf("deltas %q", words)
		}
		if r.stats.AudioOutMS.Load() == 0 || r.stats.Responses.Load() != 1 {
			t.Error("nothing was counted")
		}
	})
}

func TestTokensAreTheText(t *testing.T) {
	for _, s := range []string{"Hi there!", "", "a", " Hello,  world… (yes)\n", "Ünïcode — “x”.", "!!!"} {
		if got := strings.Join(tokens(s), ""); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
	var j json.RawMessage = []byte(`{"city":"London","n":[1,2]}`)
	if got := strings.Join(wire.ArgumentPieces(string(j)), ""); got != string(j) {
		t.Errorf("pieces %q", got)
	}
}
