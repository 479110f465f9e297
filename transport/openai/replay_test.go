package openai

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/transport"
)

// recordings finds the recorded sessions next to the repository.
func recordings(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			found := filepath.Join(dir, "..", "shared", "fixtures", "openai")
			if _, err := os.Stat(found); err != nil {
				t.Skip("no recorded sessions next to the repository")
			}
			return found
		}
	}
	t.Skip("no go.mod above the test")
	return ""
}

// recorded is one line of a recording.
type recorded struct {
	Dir  string          `json:"dir"`
	Data json.RawMessage `json:"data"`
}

func readRecording(t *testing.T, path string) []recorded {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Skipf("recording %s: %v", filepath.Base(path), err)
	}
	defer func() { _ = f.Close() }()
	var lines []recorded
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var line recorded
		if err := json.Unmarshal(sc.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	return lines
}

// sentFrame is the compared part of a frame that the recorded client sent.
type sentFrame struct {
	Type  string `json:"type"`
	Audio string `json:"audio"`
	Item  struct {
		Type, Output string
		CallID       string `json:"call_id"`
		Content      []struct{ Text string }
	} `json:"item"`
}

// replayed is the result of a replay.
type replayed struct {
	events []transport.Event
	err    *transport.Error
	stats  transport.Stats
}

// TestRecordedSessions replays recorded sessions as strict scripts: the adapter must send the recorded client's frames,
// type by type, and the provider's frames must give these events.
func TestRecordedSessions(t *testing.T) {
	dir := recordings(t)
	const heard = "SpeechStarted SpeechStopped InputCommitted ResponseStarted "
	want := map[string]string{
		"audio_in_server_vad_turn.jsonl":  heard + "user assistant user Audio user Audio assistant Audio user Audio assistant Audio assistant Audio user. Audio AudioDone assistant. Usage(41+164) ResponseDone(completed)",
		"azure_audio_in_server_vad.jsonl": heard + "user assistant user assistant user Audio user Audio assistant Audio assistant Audio assistant user. Audio AudioDone assistant. Usage(40+106) ResponseDone(completed)",
		"text_in_audio_out_turn.jsonl":    "ResponseStarted assistant Audio AudioDone assistant. Usage(16+24) ResponseDone(completed)",
		"tool_call_round.jsonl":           "ResponseStarted ToolCall(get_weather{  \n  \"city\": \"London\" \n} \n) Usage(63+22) ResponseDone(completed) ResponseStarted assistant assistant. Usage(103+13) ResponseDone(completed)",
		"tool_round_2_1.jsonl":            "ResponseStarted assistant assistant. ToolCall(get_weather{\"city\":\"London\"}) Usage(347+36) ResponseDone(completed) ResponseStarted assistant assistant. Usage(401+15) ResponseDone(completed)",
	}
	for name, events := range want {
		t.Run(name, func(t *testing.T) {
			got := replay(t, readRecording(t, filepath.Join(dir, name)))
			if diff := cmp.Diff(events, kinds(got.events)); diff != "" {
				t.Errorf("events differ (-want +got):\n%s", diff)
			}
			if got.stats != (transport.Stats{}) {
				t.Errorf("stats %+v, want none", got.stats)
			}
		})
	}
}

// replay replays one recording. The provider's goroutine follows the script; the test's sends the client's side of the
// script; a third receives.
func replay(t *testing.T, script []recorded) replayed {
	t.Helper()
	s := newServer(t)
	s.greet = func(p *peer) {
		p.send("%s", script[0].Data)
		p.expect("session.update")
		p.send("%s", script[2].Data)
	}
	conn, p := s.connect(transport.Setup{Instructions: "Reply in a few words."})

	var got replayed
	calls := make(chan transport.ToolCall, 8) // from the receiver to the sender, never closed
	var receiver sync.WaitGroup
	receiver.Go(func() {
		for {
			ev, err := conn.Recv(context.Background())
			if err != nil {
				got.err, _ = err.(*transport.Error)
				return
			}
			if call, ok := ev.(transport.ToolCall); ok {
				calls <- call
			}
			if out, ok := ev.(*transport.AudioOut); ok {
				ev = &transport.AudioOut{Item: out.Item, PCM: append([]byte(nil), out.PCM...)}
			}
			got.events = append(got.events, ev)
		}
	})
	implied := "" // the additional frame of the last command
	for _, line := range afterItems(t, script[3:]) {
		if line.Dir == "received" {
			p.send("%s", line.Data)
			continue
		}
		if line.Dir != "sent" {
			break
		}
		var frame sentFrame
		if err := json.Unmarshal(line.Data, &frame); err != nil {
			t.Fatal(err)
		}
		if frame.Type != implied {
			implied = act(t, conn, frame, calls)
		}
		p.expect(frame.Type)
	}
	p.Close(1000, "")
	receiver.Wait()
	got.stats = conn.Stats()
	return got
}

// afterItems moves every answer to a call behind the output_item.done of that call: one recorded client answered after
// arguments.done, and the provider, which does not wait for the answer, then sent the events that are now before it.
func afterItems(t *testing.T, script []recorded) []recorded {
	t.Helper()
	for i := range script {
		var answer sentFrame
		if script[i].Dir != "sent" || json.Unmarshal(script[i].Data, &answer) != nil || answer.Item.CallID == "" {
			continue
		}
		for j := i + 1; j < len(script) && script[j].Dir == "received"; j++ {
			var done sentFrame
			if json.Unmarshal(script[j].Data, &done) == nil && done.Type == "response.output_item.done" && done.Item.CallID == answer.Item.CallID {
				moved := script[i]
				copy(script[i:j], script[i+1:j+1])
				script[j] = moved
				break
			}
		}
	}
	return script
}

// act sends the command of a frame and returns the type of another frame that the same command sends.
func act(t *testing.T, conn *transport.Listener, frame sentFrame, calls <-chan transport.ToolCall) string {
	t.Helper()
	switch frame.Type {
	case "input_audio_buffer.append":
		pcm, err := base64.StdEncoding.DecodeString(frame.Audio)
		if err != nil {
			t.Fatal(err)
		}
		send(t, conn, &transport.AudioIn{PCM: pcm})
	case "conversation.item.create":
		if frame.Item.Type == "function_call_output" {
			call := <-calls
			if call.ID != frame.Item.CallID {
				t.Errorf("call %q, the recording answers %q", call.ID, frame.Item.CallID)
			}
			send(t, conn, transport.ToolResult{Call: call.Call, Output: json.RawMessage(frame.Item.Output)})
			return ""
		}
		send(t, conn, transport.UserText{Text: frame.Item.Content[0].Text})
		return "response.create"
	case "response.create":
		send(t, conn, transport.Respond{})
	default:
		t.Fatalf("the recording holds a %s", frame.Type)
	}
	return ""
}

// kinds writes events as words, repetitions as one.
func kinds(events []transport.Event) string {
	var words, last string
	for _, ev := range events {
		word := fmt.Sprintf("%T", ev)
		word = word[len("transport."):]
		switch ev := ev.(type) {
		case *transport.AudioOut:
			word = "Audio"
		case transport.Transcript:
			word = string(ev.Role)
			if ev.Final {
				word += "." // final
			}
		case transport.ToolCall:
			word += "(" + ev.Name + string(ev.Args) + ")"
		case transport.Usage:
			word += fmt.Sprintf("(%d+%d)", ev.Tokens.Input, ev.Tokens.Output)
		case transport.ResponseDone:
			word += "(" + string(ev.Status) + ")"
		}
		if word == last {
			continue
		}
		last = word
		if words != "" {
			words += " "
		}
		words += word
	}
	return words
}
