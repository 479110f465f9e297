package live

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"voicegw/audio"
	"voicegw/internal/livewire"
	"voicegw/sim/wire"
)

const weather = `
start: [{say: Hello from the weather desk.}]
rules:
  - when: {utterance: 1}
    heard: What is the weather in Paris?
  - when: {utterance: 2}
    heard: Thank you very much.
  - when: {text: 'weather in (?P<city>\w+)', declared: get_weather}
    do:
      - call: {tool: get_weather, args: {city: "${city}"}}
      - then: [{say: "In ${city}: ${result}"}]
  - when: {text: 'thank you', remembers: 'system: The user is Ada'}
    do: [{say: You are welcome Ada.}]
  - when: {text: 'thank you'}
    do: [{say: You are welcome. It was a pleasure to tell you all of these things about the weather in the city of Paris.}]
  - when: {text: 'time in (?P<city>\w+)'}
    do: [{say: Let me look.}, {call: clock}]
  - when: {text: 'silent'}
    do: nothing
`

// TestDelegation: as in the recording, the client gets the user's words during the speech, a delegation without the task,
// the model's filler, and the answer from its commentary.
func TestDelegation(t *testing.T) {
	bubble(t, wire.Options{Scenario: script(t, weather)}, func(r *rig) {
		c := r.open()
		all := c.quiet(time.Second)
		if all, loud := sounds(t, all); all != 2 || loud != 0 {
			t.Errorf("%d pieces, %d with sound, in the first second", all, loud)
		}
		all = c.speak(sound(2*time.Second, 1200*time.Millisecond))
		if got, want := kinds(all), "input_transcript.delta delegation.created output_transcript.delta"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got := words(all, livewire.InputTranscript); got != "What is the weather in Paris?" {
			t.Errorf("heard %q", got)
		}
		first, d := find(all, livewire.InputTranscript), find(all, livewire.DelegationCreated)
		if first.StartMS != 1000 || first.when > 2*time.Second {
			t.Errorf("the first words %s at %v", first.raw, first.when)
		}
		// The speech ends at about 2.9 s.
		if d.OffsetMS != 2800 || d.when < 3700*time.Millisecond || d.when > 3900*time.Millisecond || strings.Contains(string(d.raw), "eather") {
			t.Errorf("%s at %v", d.raw, d.when)
		}
		var last int64
		for _, e := range all {
			if late := e.when - time.Duration(e.EndMS)*time.Millisecond; e.Type == livewire.InputTranscript {
				if last = e.EndMS; late < 550*time.Millisecond || late > 900*time.Millisecond {
					t.Errorf("%s came %v after its time", e.raw, late)
				}
			}
		}
		if last < d.OffsetMS {
			t.Errorf("the words end at %d, before the delegation at %d", last, d.OffsetMS)
		}
		sent := time.Since(c.begun)
		c.send(text(livewire.CommentaryAppend, "In Paris it is sunny.", d.Delegation.ID))
		all = append(all, c.quiet(4*time.Second)...)
		if got := words(all, livewire.OutputTranscript); got != "Okay, checking now.In Paris it is sunny." {
			t.Errorf("said %q", got)
		}
		ack := find(all, livewire.CommentaryAppended)
		if late := ack.when - sent; late < 600*time.Millisecond || late > 850*time.Millisecond || ack.EndMS != ack.StartMS+200 || ack.ClientID == "" {
			t.Errorf("%s after %v", ack.raw, late)
		}
		if _, loud := sounds(t, all); loud < 20 || loud > 40 {
			t.Errorf("%d pieces have sound", loud)
		}
		if n := r.stats.Calls.Load(); n != 1 || r.stats.Results.Load() != 1 || r.stats.Utterances.Load() != 1 {
			t.Errorf("the statistics count %d delegations", n)
		}
	})
}

// TestTrack: the clock advances only with audio, and in real time at most.
func TestTrack(t *testing.T) {
	bubble(t, wire.Options{}, func(r *rig) {
		c := r.open()
		if got := c.take(20 * time.Second); len(got) > 0 && kinds(got) != "usage.updated" {
			t.Errorf("without audio, the client got %s", kinds(got))
		}
		c.send(string(livewire.AppendAudio(nil, make([]byte, audio.Bytes(24000, 5*time.Second)))))
		for i, want := range []int{2, 10, 10, 10, 10, 0, 0} {
			if n, loud := sounds(t, c.take(time.Second)); n < want-1 || n > want+1 || loud > 0 {
				t.Errorf("second %d: %d pieces, want %d", i, n, want)
			}
		}
		c.send(string(livewire.AppendAudio(nil, make([]byte, audio.Bytes(24000, time.Minute)+100))))
		if e := find(c.take(0), livewire.Failed); e.Error == nil || e.Error.Code != livewire.CodeInvalidAudio {
			t.Errorf("a minute ahead: %s", e.raw)
		}
	})
	bubble(t, wire.Options{Speed: -1}, func(r *rig) {
		c := r.open()
		c.send(string(livewire.AppendAudio(nil, make([]byte, audio.Bytes(24000, 5*time.Second)))))
		if n, _ := sounds(t, c.take(0)); n != 42 {
			t.Errorf("%d pieces at once", n)
		}
	})
}

func TestInterruption(t *testing.T) {
	bubble(t, wire.Options{Scenario: script(t, strings.Replace(weather, "utterance: 2", "utterance: any", 1))}, func(r *rig) {
		c := r.open()
		c.send(text(livewire.InstructionsAppend, "Greet the user.", ""))
		all := c.quiet(5 * time.Second)
		if got := words(all, livewire.OutputTranscript); got != "Hello from the weather desk." {
			t.Errorf("the greeting is %q", got)
		}
		c.speak(sound(2*time.Second, 2*time.Second)) // a delegation
		c.quiet(2 * time.Second)
		all = c.speak(sound(2*time.Second, 2*time.Second))
		if !strings.Contains(words(all, livewire.OutputTranscript), "You are welcome.") {
			t.Fatalf("said %q", words(all, livewire.OutputTranscript))
		}
		// A back-channel does not stop it.
		before, turns := r.stats.Interrupted.Load(), r.stats.Responses.Load()
		all = c.speak(sound(300*time.Millisecond, 1200*time.Millisecond))
		if _, loud := sounds(t, all); loud < 14 || r.stats.Interrupted.Load() != before || r.stats.Responses.Load() != turns {
			t.Errorf("a back-channel: %d pieces have sound", loud)
		}
		all = c.speak(sound(1500*time.Millisecond, 0))
		if _, loud := sounds(t, all); loud < 4 || loud > 9 || r.stats.Interrupted.Load() != before+1 {
			t.Errorf("an interruption: %d pieces have sound", loud)
		}
		all = append(all, c.speak(sound(0, 500*time.Millisecond))...)
		if got := words(all, livewire.OutputTranscript); strings.Contains(got, "city of Paris") {
			t.Errorf("the transcript has unspoken words: %q", got)
		}
	})
}

func TestAppends(t *testing.T) {
	bubble(t, wire.Options{Scenario: script(t, weather)}, func(r *rig) {
		c := r.open()
		c.send(text(livewire.ThinkingAppend, "The user is Ada.", ""))
		if got := c.take(5 * time.Second); len(got) > 0 {
			t.Errorf("an append without audio: %s", kinds(got))
		}
		all := c.quiet(3 * time.Second)
		if got := kinds(all); got != "thinking.appended" {
			t.Errorf("thinking: %s", got)
		}
		c.send(text(livewire.InstructionsAppend, "Stay silent.", ""))
		if got := kinds(c.quiet(4 * time.Second)); got != "instructions.appended" {
			t.Errorf("silent instructions: %s", got)
		}
		c.send(text(livewire.InstructionsAppend, "The user typed: thank you", ""))
		if got := c.quiet(5 * time.Second); words(got, livewire.OutputTranscript) != "You are welcome Ada." {
			t.Errorf("the model does not use its context: %s %q", kinds(got), words(got, livewire.OutputTranscript))
		}
		// Commentary in two pieces is spoken in order.
		c.send(text(livewire.CommentaryAppend, "The first piece.", ""), text(livewire.CommentaryAppend, "The second piece.", ""))
		if got := words(c.quiet(6*time.Second), livewire.OutputTranscript); got != "The first piece.The second piece." {
			t.Errorf("said %q", got)
		}
		// The model does not begin while the user speaks.
		c.send(text(livewire.CommentaryAppend, "Not yet.", ""))
		if got := words(c.speak(sound(3*time.Second, 0)), livewire.OutputTranscript); got != "" {
			t.Errorf("said %q while the user spoke", got)
		}
		if got := words(c.quiet(6*time.Second), livewire.OutputTranscript); !strings.HasPrefix(got, "Not yet.") {
			t.Errorf("said %q after the user had spoken", got)
		}
		// Instructions stop the current answer.
		c.send(text(livewire.CommentaryAppend, strings.Repeat("This goes on and on. ", 10), ""))
		c.quiet(2 * time.Second)
		c.send(text(livewire.InstructionsAppend, "The user typed: time in Rome", ""))
		all = c.quiet(5 * time.Second)
		if got := kinds(all); !strings.Contains(got, "instructions.appended delegation.created output_transcript.delta") ||
			!strings.HasSuffix(words(all, livewire.OutputTranscript), "Let me look.") {
			t.Errorf("got %s %q", got, words(all, livewire.OutputTranscript))
		}
		for _, c2 := range []struct{ frame, code, param string }{
			{text(livewire.ThinkingAppend, "x", "item_nobody"), "invalid_value", "delegation_id"},
			{text(livewire.ThinkingAppend, " ", ""), "invalid_value", "content"},
			{text(livewire.ThinkingAppend, strings.Repeat("word ", 400), ""), "invalid_value", "content"},
			{`{"type":"session.thinking.append","event_id":"x","content":"a"}`, "missing_required_parameter", "delegation_id"},
			{`{"type":"session.nonsense"}`, "invalid_value", "type"},
			{`{"type":"response.create"}`, "invalid_value", "type"},
			{`{"type":"session.start","session":{"model":"gpt-live-1"}}`, "invalid_value", "type"},
			{`{"type":"session.update","session":{"instructions":"x"}}`, "immutable_field_update", "session.instructions"},
			{`{"type":"session.input_audio.append","audio":"AAAA"}`, "invalid_audio", "audio"},
			{`not json`, "invalid_json", ""},
		} {
			c.send(c2.frame)
			e := find(c.take(0), livewire.Failed)
			if e.Error == nil || e.Error.Code != c2.code || e.Error.Param != c2.param {
				t.Errorf("%.80s: %s, want %s at %s", c2.frame, e.raw, c2.code, c2.param)
			}
		}
		for range maxPending { // without audio they stay pending
			c.send(text(livewire.ThinkingAppend, "x", ""))
		}
		if got := c.take(0); len(got) > 0 {
			t.Errorf("many appends: %s", got[0].raw)
		}
		c.send(text(livewire.ThinkingAppend, "x", ""))
		if e := find(c.take(0), livewire.Failed); e.Error == nil || e.Error.Code != livewire.CodeInvalidValue {
			t.Errorf("one append too many: %s", e.raw)
		}
		c.send(`{"type":"session.update","event_id":"u","session":{"delegation":{"type":"client","acknowledgement_delay_ms":900}}}`)
		if e := find(c.take(0), livewire.Updated); e.ClientID != "u" || e.Session.Delegation.AcknowledgementDelayMS != 900 {
			t.Errorf("updated: %s", e.raw)
		}
	})
}

// TestAcknowledgement: the filler waits for acknowledgement_delay_ms, and an append replaces it.
func TestAcknowledgement(t *testing.T) {
	for _, append := range []bool{false, true} {
		bubble(t, wire.Options{Scenario: script(t, weather)}, func(r *rig) {
			c := r.open(`"delegation":{"type":"client","acknowledgement_delay_ms":2000}`)
			c.speak(sound(2*time.Second, 1100*time.Millisecond))
			if append {
				c.send(text(livewire.ThinkingAppend, "It is being looked up.", ""))
			}
			if got := words(c.quiet(time.Second), livewire.OutputTranscript); got != "" {
				t.Errorf("said %q before the delay", got)
			}
			if got := words(c.quiet(3*time.Second), livewire.OutputTranscript); (got == fillerLine) == append {
				t.Errorf("said %q after the delay", got)
			}
		})
	}
}

func TestMute(t *testing.T) {
	bubble(t, wire.Options{Scenario: script(t, weather)}, func(r *rig) {
		c := r.open()
		c.send(`{"type":"session.input_audio.mute","event_id":"m"}`, text(livewire.CommentaryAppend, "You are muted.", ""))
		all := append(c.take(0), c.speak(sound(2*time.Second, 3*time.Second))...)
		if got := kinds(all); got != "input_audio.muted commentary.appended output_transcript.delta" || find(all, livewire.Muted).ClientID != "m" {
			t.Errorf("muted: %s", got)
		}
		c.send(`{"type":"session.input_audio.unmute"}`)
		if got := kinds(c.speak(sound(2*time.Second, 2*time.Second))); !strings.HasPrefix(got, "input_audio.unmuted input_transcript.delta delegation.created") {
			t.Errorf("unmuted: %s", got)
		}
	})
}

func TestFixture(t *testing.T) {
	notice := sound(1230*time.Millisecond, 0)
	play := func(pcm []byte) string {
		return `{"type":"session.output_audio.fixture.play","event_id":"f","audio":"` + base64.StdEncoding.EncodeToString(pcm) + `"}`
	}
	bubble(t, wire.Options{Scenario: script(t, weather)}, func(r *rig) {
		c := r.open()
		c.send(text(livewire.CommentaryAppend, strings.Repeat("This goes on and on. ", 10), ""))
		c.quiet(3 * time.Second)
		c.send(play(notice), play(notice), text(livewire.ThinkingAppend, "x", ""))
		if got := c.take(0); kinds(got) != "error" || len(got) != 2 {
			t.Errorf("during a fixture: %s", kinds(got))
		}
		all := c.speak(sound(time.Second, 500*time.Millisecond)) // the model does not hear it
		all = append(all, c.quiet(3*time.Second)...)
		if got := kinds(all); got != "output_audio.fixture.playing output_audio.fixture.played" {
			t.Errorf("got %s", got)
		}
		var track []byte
		for i, e := range all {
			if e.Type != livewire.AudioDelta {
				continue
			}
			pcm, err := base64.StdEncoding.DecodeString(string(e.Sound))
			if err != nil {
				t.Fatalf("piece %d: %v", i, err)
			}
			track = append(track, pcm...)
		}
		if !strings.Contains(string(track), string(notice)) {
			t.Error("the track does not have the bytes of the fixture")
		}
		playing, played := find(all, livewire.FixturePlaying), find(all, livewire.FixturePlayed)
		if d := played.when - playing.when; d < 1200*time.Millisecond || d > 1300*time.Millisecond || played.ClientID != "f" {
			t.Errorf("played %s after %v", played.raw, d)
		}
		for _, bad := range [][]byte{nil, {1}, make([]byte, audio.Bytes(24000, 31*time.Second))} {
			c.send(play(bad))
			if got := find(c.take(0), livewire.Failed); got.Error == nil || got.Error.Param != "audio" {
				t.Errorf("%d bytes: %s", len(bad), got.raw)
			}
		}
	})
	for _, format := range []string{`{"type":"audio/pcmu","rate":8000}`, `{"type":"audio/pcma","rate":8000}`, `{"type":"audio/pcm","rate":16000}`} {
		bubble(t, wire.Options{Speed: -1}, func(r *rig) {
			c := r.open(`"audio":{"format":` + format + `}`)
			size, silence := 800, "\xff"
			switch {
			case strings.Contains(format, "16000"):
				size, silence = 3200, "\x00"
			case strings.Contains(format, "pcma"):
				silence = "\xd5"
			}
			c.send(play(notice))
			c.send(string(livewire.AppendAudio(nil, []byte(strings.Repeat(silence, 20*size)))))
			var pieces []string
			for _, e := range c.take(0) {
				if e.Type == livewire.AudioDelta {
					pieces = append(pieces, e.decoded(t))
				}
			}
			if len(pieces) != 12 || len(pieces[0]) != size || strings.Trim(pieces[0], silence) == "" {
				t.Errorf("%s: %d pieces of %d bytes", format, len(pieces), len(pieces[0]))
			}
			c.send(string(livewire.AppendAudio(nil, []byte(strings.Repeat(silence, 20*size)))))
			got := c.take(0)
			if last := got[len(got)-1]; strings.Trim(last.decoded(t), silence) != "" {
				t.Errorf("%s: silence is not silent", format)
			}
		})
	}
}

func (e got) decoded(t *testing.T) string {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(string(e.Sound))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestClose: appends that the timeline still reaches are placed, the others are errors, and session.closed is last.
func TestClose(t *testing.T) {
	bubble(t, wire.Options{}, func(r *rig) {
		c := r.open()
		c.quiet(2500 * time.Millisecond)
		c.send(text(livewire.ThinkingAppend, "a", ""), `{"type":"session.close","event_id":"z"}`)
		all := c.take(300 * time.Millisecond)
		if kinds(all) != "" || c.closed() != 0 {
			t.Errorf("at once: %s", kinds(all))
		}
		all = c.take(400 * time.Millisecond)
		if got := kinds(all); got != "error closed" || c.closed() != noCode {
			t.Errorf("got %s, close code %d", got, c.closed())
		}
		if e := find(all, livewire.Failed); e.Error.Code != livewire.CodeContextIncomplete || e.Error.ClientID != "e-session.thinking.append" {
			t.Errorf("the append: %s", e.raw)
		}
		if e := find(all, livewire.Closed); e.Reason != livewire.ReasonRequested || e.Usage.Seconds != 2 || e.ClientID != "z" || e.Session.ID == "" {
			t.Errorf("closed: %s", e.raw)
		}
	})
	bubble(t, wire.Options{}, func(r *rig) {
		c := r.open()
		c.quiet(time.Second)
		c.send(text(livewire.ThinkingAppend, "a", ""), `{"type":"session.close"}`)
		for range 20 { // audio continues to the end
			if c.ws.Write(context.Background(), 1, livewire.AppendAudio(nil, make([]byte, 4800))) != nil {
				break
			}
			pass(100 * time.Millisecond)
		}
		if got := kinds(c.take(time.Second)); got != "thinking.appended closed" {
			t.Errorf("with audio: %s", got)
		}
	})
}

func TestEnds(t *testing.T) {
	bubble(t, wire.Options{}, func(r *rig) {
		c := r.open()
		all := c.take(32 * time.Second)
		e := find(all, livewire.Closed)
		if kinds(all) != "usage.updated closed" || e.Reason != livewire.ReasonExpired || e.when != livewire.NoAudioLife || c.closed() != noCode {
			t.Errorf("without audio: %s %s", kinds(all), e.raw)
		}
		c = r.open()
		c.quiet(time.Second)
		if got := kinds(c.take(45 * time.Second)); got != "usage.updated" || c.closed() != 0 {
			t.Errorf("after audio and then none: %s", got)
		}
	})
	bubble(t, wire.Options{ConnectionLife: 40 * time.Second}, func(r *rig) {
		c := r.open()
		expires := time.Unix(c.all[0].Session.ExpiresAt, 0)
		all := c.quiet(39 * time.Second)
		var usage []string
		for _, e := range all {
			if e.Type == livewire.UsageUpdated {
				usage = append(usage, fmt.Sprintf("%g %.4f", e.Usage.Seconds, e.Context.Ratio))
			}
		}
		if got := strings.Join(usage, ", "); got != "15 0.0061, 30 0.0119" {
			t.Errorf("usage %s", got)
		}
		all = c.take(2 * time.Second)
		if e := find(all, livewire.Closed); e.Reason != livewire.ReasonExpired || !expires.Equal(c.begun.Add(40*time.Second)) {
			t.Errorf("the end: %s, expected at %v", e.raw, expires)
		}
	})
}

// TestCompaction: the context shrinks to the instructions and 8,192 tokens, without an event.
func TestCompaction(t *testing.T) {
	bubble(t, wire.Options{Speed: -1}, func(r *rig) {
		c := r.open(`"instructions":"` + strings.Repeat("word ", 12_000) + `"`)
		piece := text(livewire.ThinkingAppend, strings.Repeat("word ", 375), "")
		var ratios []float64
		for _, pieces := range []int{190, 20, 1} {
			for range pieces {
				c.send(piece)
			}
			c.send(string(livewire.AppendAudio(nil, make([]byte, 48000))))
			ratios = append(ratios, find(c.take(15*time.Second), livewire.UsageUpdated).Context.Ratio)
		}
		if ratios[0] < 0.8 || ratios[0] > livewire.CompactAt || ratios[1] < livewire.CompactAt || ratios[2] > 0.21 {
			t.Errorf("ratios %v", ratios)
		}
	})
}

// TestStartIsFirst: another first event, or a refused session, ends the connection with an error.
func TestStartIsFirst(t *testing.T) {
	bubble(t, wire.Options{}, func(r *rig) {
		for _, c2 := range []struct{ frame, code, param string }{
			{`{"type":"session.input_audio.append","audio":"AAAA"}`, "invalid_value", "type"},
			{`{"type":"session.close"}`, "invalid_value", "type"},
			{`{"type":"session.start","event_id":"a","session":{"model":"gpt-live-1","turn_detection":null}}`, "unknown_parameter", "session.turn_detection"},
			{`{"type":"session.start","event_id":"a","session":{"model":"gpt-realtime-2.1"}}`, "model_not_found", "session.model"},
			{`{"type":"session.start","event_id":"a","session":{"model":"gpt-live-1","audio":{"output":{"voice":"nova"}}}}`, "forbidden", "session.audio.output.voice"},
			{`hello`, "invalid_json", ""},
		} {
			c := r.connect(livewire.Path)
			c.send(c2.frame)
			all := c.take(0)
			e := find(all, livewire.Failed)
			if len(all) != 1 || e.Error == nil || e.Error.Code != c2.code || e.Error.Param != c2.param || c.closed() != noCode {
				t.Errorf("%s: %s, close code %d", c2.frame, e.raw, c.closed())
			}
			if strings.Contains(c2.frame, `"a"`) != (e.Error.ClientID == "a") {
				t.Errorf("%s: %s has the wrong client_event_id", c2.frame, e.raw)
			}
		}
		silent := r.connect(livewire.Path)
		if got := silent.take(time.Minute); len(got) > 0 || silent.closed() != 0 {
			t.Errorf("a silent socket receives %s", kinds(got))
		}
	})
}

func TestHandshake(t *testing.T) {
	bubble(t, wire.Options{}, func(r *rig) {
		for _, c := range []struct {
			path, key string
			status    int
		}{
			{livewire.Path, "", 401}, {livewire.Path, "sk-invalid", 401}, {livewire.Path, "expired", 401},
			{livewire.Path + "/live_1/attach", "sk-x", 404}, {livewire.Path + "/live_1/fork", "sk-x", 404},
		} {
			if _, resp, err := r.dial(c.path, c.key); err == nil || resp.StatusCode != c.status {
				t.Errorf("%s with %q: %v", c.path, c.key, err)
			}
		}
		for method, status := range map[string]int{http.MethodGet: 426, http.MethodPost: 404} {
			req, err := http.NewRequest(method, "http://sim"+livewire.Path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer sk-x")
			resp, err := r.http.Do(req)
			if err != nil || resp.StatusCode != status {
				t.Fatalf("%s: %v %v", method, resp, err)
			}
			if err := resp.Body.Close(); err != nil {
				t.Error(err)
			}
		}
		ws, _, err := r.dial(livewire.Path, "sk-quota")
		if err != nil {
			t.Fatal(err)
		}
		defer ws.CloseNow()
		if err := ws.Write(context.Background(), 1, []byte(`{"type":"session.start","session":{"model":"gpt-live-1"}}`)); err != nil {
			t.Fatal(err)
		}
		if _, data, err := ws.Read(context.Background()); err != nil || !strings.Contains(string(data), livewire.CodeNoCredit) {
			t.Errorf("without credit: %s %v", data, err)
		}
	})
}

// TestAzure: the model is a deployment, audio has times, and acknowledgements have no client_event_id.
func TestAzure(t *testing.T) {
	bubble(t, wire.Options{Scenario: script(t, weather)}, func(r *rig) {
		c := r.connect("/openai" + livewire.Path)
		c.send(`{"type":"session.start","event_id":"s","session":{"model":"my-deployment"}}`)
		all := append(c.take(0), c.quiet(time.Second)...)
		c.send(`{"type":"session.input_audio.mute","event_id":"m"}`)
		all = append(all, c.quiet(time.Second)...)
		if e := find(all, livewire.Started); e.ClientID != "" || e.Session.Model != "my-deployment" {
			t.Errorf("started: %s", e.raw)
		}
		if e := find(all, livewire.Muted); e.Type == "" || e.ClientID != "" {
			t.Errorf("muted: %s", e.raw)
		}
		next := int64(0)
		for _, e := range all {
			if e.Type != livewire.AudioDelta {
				continue
			}
			if e.StartMS != next || e.EndMS != next+100 || !strings.Contains(string(e.raw), `"start_ms"`) {
				t.Fatalf("a piece from %d to %d, want from %d", e.StartMS, e.EndMS, next)
			}
			next = e.EndMS
		}
		c.send(`{"type":"session.nonsense","event_id":"n"}`)
		if e := find(c.take(0), livewire.Failed); e.Error.ClientID != "n" {
			t.Errorf("error: %s", e.raw)
		}
	})
}

// TestHistory: the model knows the initial messages of the session.
func TestHistory(t *testing.T) {
	bubble(t, wire.Options{Scenario: script(t, "rules: [{when: {utterance: any}, do: [{say: 'I know ${memory}'}]}]")}, func(r *rig) {
		input, err := json.Marshal([]livewire.Message{
			livewire.NewMessage("user", "My colour is blue."), livewire.NewMessage("assistant", "Noted."), livewire.NewMessage("developer", "It is late."),
		})
		if err != nil {
			t.Fatal(err)
		}
		c := r.open(`"input":` + string(input))
		if got := c.quiet(2 * time.Second); kinds(got) != "" {
			t.Errorf("unasked: %s", kinds(got))
		}
		got := words(c.speak(sound(time.Second, 12*time.Second)), livewire.OutputTranscript)
		if got != "I know user: My colour is blue. | model: Noted. | system: It is late." {
			t.Errorf("said %q", got)
		}
	})
}
