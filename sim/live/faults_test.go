package live

import (
	"context"
	"strings"
	"testing"
	"time"

	"voicegw/internal/livewire"
	"voicegw/sim/scenario"
	"voicegw/sim/wire"
)

// TestFaults runs one conversation with each fault: a delegated request, and commentary.
func TestFaults(t *testing.T) {
	delegation := "input_transcript.delta delegation.created output_transcript.delta"
	for do, want := range map[string]struct {
		kinds, said string
		delegations int
		code        int
		audio       bool
	}{
		"{at: setup, do: no_audio}":                      {delegation + " commentary.appended output_transcript.delta closed", "Okay, checking now.It is fine.", 1, noCode, false},
		"{at: setup, do: unplaced}":                      {delegation + " error closed", "Okay, checking now.", 1, noCode, true},
		"{at: call, n: 1, do: undelegated}":              {"input_transcript.delta output_transcript.delta commentary.appended output_transcript.delta closed", claimLine + "It is fine.", 0, noCode, true},
		"{at: call, do: duplicate_call}":                 {delegation + " commentary.appended output_transcript.delta closed", "Okay, checking now.It is fine.", 2, noCode, true},
		"{at: call, do: late_call, for: 1500ms}":         {"input_transcript.delta output_transcript.delta commentary.appended output_transcript.delta delegation.created output_transcript.delta closed", "Okay, checking now.It is fine.", 1, noCode, true},
		"{at: call, do: cancel_call}":                    {delegation + " commentary.appended output_transcript.delta closed", "Okay, checking now.It is fine.", 1, noCode, true},
		"{at: setup, do: deaf}":                          {"input_transcript.delta commentary.appended closed", "", 0, noCode, true},
		"{at: chunk, n: 3, do: expire, reason: content}": {delegation + " error closed", "Okay,", 1, noCode, true},
		"{at: turn, n: 2, do: expire}":                   {delegation + " commentary.appended closed", "Okay, checking", 1, noCode, true},
		"{at: setup, do: goaway, for: 3s}":               {delegation + " closed", "Okay,", 1, noCode, true},
		"{at: turn, n: 1, do: quota}":                    {"input_transcript.delta error", "", 0, noCode, true},
		"{at: turn, n: 1, do: drop}":                     {"input_transcript.delta", "", 0, 1006, true},
		"{at: turn, n: 1, do: close, code: 4001}":        {"input_transcript.delta", "", 0, 4001, true},
		"{at: event, event: session.delegation.created, do: unknown_event, unknown: session.mystery}": {
			"input_transcript.delta mystery delegation.created output_transcript.delta commentary.appended output_transcript.delta closed", "Okay, checking now.It is fine.", 1, noCode, true},
	} {
		bubble(t, wire.Options{Scenario: script(t, weather), Faults: faults(t, do)}, func(r *rig) {
			c := r.open()
			pcm := append(sound(2*time.Second, 8*time.Second), make([]byte, 4800)...)
			for i := 0; len(pcm) > 0; i++ { // the fault may end the connection
				if i == 30 {
					_ = c.ws.Write(context.Background(), 1, []byte(text(livewire.CommentaryAppend, "It is fine.", "")))
				}
				_ = c.ws.Write(context.Background(), 1, livewire.AppendAudio(nil, pcm[:min(4800, len(pcm))]))
				pcm = pcm[min(4800, len(pcm)):]
				pass(100 * time.Millisecond)
			}
			_ = c.ws.Write(context.Background(), 1, []byte(`{"type":"session.close"}`))
			all := c.take(10 * time.Second)
			delegations := 0
			for _, e := range all {
				if e.Type == livewire.DelegationCreated {
					delegations++
				}
			}
			n, _ := sounds(t, all)
			if kinds(all) != want.kinds || words(all, livewire.OutputTranscript) != want.said || delegations != want.delegations ||
				c.closed() != want.code || n > 0 != want.audio {
				t.Errorf("%s: %s, said %q, %d delegations, close code %d, %d pieces", do, kinds(all), words(all, livewire.OutputTranscript), delegations, c.closed(), n)
			}
			if e := find(all, livewire.Closed); strings.Contains(do, "content") && e.Reason != "content" {
				t.Errorf("%s: %s", do, e.raw)
			}
			if r.stats.Faults.Load() == 0 {
				t.Errorf("%s did not happen", do)
			}
		})
	}
}

// TestRefusedStart: a fault refuses the handshake with a status, or the session with an error.
func TestRefusedStart(t *testing.T) {
	bubble(t, wire.Options{Faults: faults(t, "{at: connect, api: openai_live, connection: 1, do: http_error, code: 503, for: 2s}, {at: connect, connection: 2, do: quota}")}, func(r *rig) {
		if _, resp, err := r.dial(livewire.Path, "sk-x"); err == nil || resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "2" {
			t.Errorf("the handshake: %v", err)
		}
		c := r.connect(livewire.Path)
		c.send(`{"type":"session.start","session":{"model":"gpt-live-1"}}`)
		if e := find(c.take(0), livewire.Failed); e.Error == nil || e.Error.Code != livewire.CodeNoCredit || c.closed() != noCode {
			t.Errorf("the start: %s", e.raw)
		}
	})
}

// TestScenarioSteps: a scenario can wait, be silent, cause faults and end the session.
func TestScenarioSteps(t *testing.T) {
	for steps, want := range map[string]struct {
		kinds string
		code  int
	}{
		"[{say: One.}, {wait: 3s}, {say: Two.}, {silence: 1s}, {end: {reason: content}}]": {"input_transcript.delta output_transcript.delta closed", noCode},
		"[{wait: 1s}, {fault: drop}]":                 {"input_transcript.delta", 1006},
		"[{say: Bye.}, {end: {code: 4002}}]":          {"input_transcript.delta output_transcript.delta", 4002},
		"[{wait: 500ms}, {say: One.}, {call: a}]":     {"input_transcript.delta delegation.created output_transcript.delta", 0},
		"[{call: [{tool: a}, {tool: b, repeat: 3}]}]": {"input_transcript.delta delegation.created output_transcript.delta", 0},
	} {
		s, err := scenario.Parse("x", []byte("rules: [{when: {utterance: any}, do: "+steps+"}]"))
		if err != nil {
			t.Fatal(err)
		}
		bubble(t, wire.Options{Scenario: s}, func(r *rig) {
			c := r.open()
			for _, piece := range [][]byte{sound(time.Second, 0), make([]byte, 48000*8)} {
				for len(piece) > 0 {
					_ = c.ws.Write(context.Background(), 1, livewire.AppendAudio(nil, piece[:min(4800, len(piece))]))
					piece = piece[min(4800, len(piece)):]
					pass(100 * time.Millisecond)
				}
			}
			all := c.take(0)
			if kinds(all) != want.kinds || c.closed() != want.code {
				t.Errorf("%s: %s, close code %d", steps, kinds(all), c.closed())
			}
		})
	}
}
