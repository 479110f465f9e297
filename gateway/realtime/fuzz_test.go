package realtime

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"voicegw/internal/openaiwire"
	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// fuzzEvents are events of a client; ids of items and calls repeat, so that events refer to each other.
var fuzzEvents = []string{
	`{"type":"session.update","session":{"type":"realtime","instructions":"x","audio":{"input":{"transcription":{"model":"whisper-1"}}}}}`,
	`{"type":"session.update","session":{"audio":{"input":{"turn_detection":null}}}}`,
	`{"type":"session.update","session":{"audio":{"input":{"turn_detection":{"type":"server_vad","create_response":false}}}}}`,
	`{"type":"session.update","session":{"audio":{"input":{"turn_detection":{"type":"server_vad","create_response":true,"interrupt_response":false}}}}}`,
	`{"type":"session.update","session":{"audio":{"input":{"turn_detection":{"type":"semantic_vad"}}}}}`,
	`{"type":"session.update","session":{"audio":{"output":{"format":{"type":"audio/pcmu"}}}}}`,
	`{"type":"session.update","session":{"output_modalities":["text"],"tools":[{"type":"function","name":"f"}]}}`,
	`{"type":"session.update","session":{"audio":{"input":{"turn_detection":{"type":"server_vad","idle_timeout_ms":5000}}}}}`,
	`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo="}]}}`,
	`{"type":"input_audio_buffer.commit"}`,
	`{"type":"input_audio_buffer.clear"}`,
	`{"type":"conversation.item.create","item":{"id":"i1","type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}}`,
	`{"type":"conversation.item.create","item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"}]}}`,
	`{"type":"conversation.item.create","previous_item_id":"i1","item":{"type":"message","role":"user","content":[{"type":"input_audio","audio":"AAAA"}]}}`,
	`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"c1","output":"x"}}`,
	`{"type":"conversation.item.create","item":{"type":"function_call","name":"f","arguments":"{}"}}`,
	`{"type":"conversation.item.create","item":{"type":"mcp_approval_response","approval_request_id":"x","approve":true}}`,
	`{"type":"conversation.item.truncate","item_id":"LAST","content_index":0,"audio_end_ms":300}`,
	`{"type":"conversation.item.delete","item_id":"i1"}`,
	`{"type":"conversation.item.retrieve","item_id":"LAST"}`,
	`{"type":"response.create","response":{"metadata":{"a":"b"}}}`,
	`{"type":"response.create","response":{"instructions":"x","output_modalities":["text"],"tools":[{"type":"function","name":"g"}]}}`,
	`{"type":"response.cancel"}`,
	`{"type":"session.close"}`,
	`{"type":"nothing"}`,
	`[]`,
}

// fuzzMessage returns a message of a session, which may be invalid at that point.
func fuzzMessage(a, b byte) protocol.ServerMessage {
	head := protocol.Header{Turn: int(b % 4)}
	item := fmt.Sprintf("a%d", b/4%3)
	used := protocol.Usage{InputTokens: 1}
	switch a % 16 {
	case 0:
		return &protocol.TurnStarted{Header: head}
	case 1:
		return &protocol.SpeechStarted{Header: head, AudioMS: int64(b)}
	case 2:
		return &protocol.SpeechStopped{Header: head, AudioMS: int64(b) * 2}
	case 3:
		return &protocol.Transcript{Header: head, ID: "u" + item, Role: "user", Text: "some words"[:b%11], Final: b > 128}
	case 4:
		return &protocol.Transcript{Header: head, ID: item, Role: "assistant", Text: "some words"[:b%11], Final: b > 128}
	case 5:
		return &protocol.AudioStart{Header: head, ItemID: item}
	case 6:
		return &protocol.AudioEnd{Header: head, ItemID: item}
	case 7:
		return &protocol.AudioFlush{Header: head, ItemID: item, Reason: []string{"user_speech", "user_stop"}[b%2]}
	case 8:
		return &protocol.ToolCall{Header: head, CallID: "c1", Name: "f", Args: json.RawMessage(`{}`)}
	case 9:
		return &protocol.ToolStarted{Header: head, CallID: "c2", Tool: "kb_search"}
	case 10:
		return &protocol.ToolEnded{Header: head, CallID: "c" + fmt.Sprint(1+b%2), Tool: "kb_search", OK: b > 100}
	case 11:
		return &protocol.AnswerEnded{Header: head, Waiting: b > 200, Usage: used}
	case 12:
		return &protocol.TurnEnded{Header: head, Status: []string{"completed", "interrupted", "failed"}[b%3], Usage: used}
	case 13:
		return &protocol.Error{Header: head, Code: []string{"no_answer", "transcription_failed", "limit"}[b%3], Message: "m"}
	case 14:
		return &protocol.ConfirmationRequest{Header: head, Token: "cf", Tool: "kb_search", Args: json.RawMessage(`{}`)}
	}
	return &protocol.Pong{Header: head}
}

// FuzzState: for any order of client events, session messages, audio and time, each response ends exactly once, no event
// follows the end, and a strict client can parse every event.
func FuzzState(f *testing.F) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		data := make([]byte, 300)
		for i := range data {
			data[i] = byte(r.IntN(256))
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { converse(t, data[:min(len(data), 900)]) })
}

var fuzzTone = testutil.Tone(24000, 200, -12, 400*time.Millisecond)

// converse runs a conversation with a step for each three bytes.
func converse(t *testing.T, data []byte) {
	now := epoch
	s := newState(now)
	var check checker
	last := "none"
	take := func() {
		for _, e := range s.Events {
			check.event(t, e, strings.Contains(string(e), "timeout_triggered")) // Pipecat does not enable it
			var of struct{ Item struct{ ID string } }
			if json.Unmarshal(e, &of) == nil && of.Item.ID != "" {
				last = of.Item.ID
			}
		}
		for _, in := range s.Inputs {
			check.input(t, in)
		}
		s.Events, s.Inputs = nil, nil
	}
	take()
	for len(data) >= 3 && !t.Failed() {
		a, b, c := data[0], data[1], data[2]
		data = data[3:]
		now = now.Add(time.Duration(c) * time.Duration(1+a/250*20) * time.Millisecond)
		for due := s.WakeAt(); !due.IsZero() && !due.After(now); due = s.WakeAt() {
			s.Tick(due)
			if !s.WakeAt().After(due) && !s.WakeAt().IsZero() {
				t.Fatal("a tick changed nothing")
			}
		}
		switch a % 5 {
		case 0, 1:
			s.Take(now, fuzzMessage(b, c))
		case 2:
			raw := fuzzEvents[int(b)%len(fuzzEvents)]
			e, err := openaiwire.ParseEvent([]byte(raw))
			if e.ItemID == "LAST" {
				e.ItemID = last
			}
			s.Event(now, e, err)
		case 3:
			pcm := fuzzTone
			if b > 100 {
				pcm = make([]byte, 9600)
			}
			s.Hear(now, pcm)
		case 4:
			if e := s.AppendAudio(nil, now, fuzzTone[:int(c)*2]); len(e) > 0 {
				s.Events = append(s.Events, e)
			}
		}
		take()
		if len(s.mirror.List) > maxItems || len(s.answer.voices) > maxVoices || len(s.in.said) > maxUnwritten {
			t.Fatal("a list grows without a limit")
		}
	}
	check.over(t, s)
}

// TestMirrorIsBounded: the mirror drops the oldest items, and its size is correct.
func TestMirrorIsBounded(t *testing.T) {
	s := newState(epoch)
	long := string(make([]byte, 7000))
	for i := range 400 {
		e, err := openaiwire.ParseEvent(fmt.Appendf(nil, `{"type":"conversation.item.create","item":{"id":"i%d","type":"message","role":"user","content":[{"type":"input_text","text":%q}]}}`, i, long[:i*7]))
		if err != nil {
			e, err = openaiwire.ParseEvent(fmt.Appendf(nil, `{"type":"conversation.item.create","item":{"id":"i%d","type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}}`, i))
		}
		s.Event(epoch, e, err)
	}
	size := 0
	for _, it := range s.mirror.List {
		size += it.Size
	}
	if n := len(s.mirror.List); n > maxItems || n < 10 || size != s.mirror.bytes || size > maxBytes {
		t.Errorf("%d items of %d bytes, counted as %d", n, size, s.mirror.bytes)
	}
	if _, i := s.mirror.Find("i399"); i != len(s.mirror.List)-1 {
		t.Error("the newest item is not the last")
	}
}
