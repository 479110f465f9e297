package gemini

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"voicegw/audio"
	"voicegw/transport"
)

var update = flag.Bool("update", false, "rewrite the golden event lists")

// sharedDir returns a folder of ../shared, or skips the test if it is missing.
func sharedDir(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
	dir = filepath.Join(dir, "..", "shared", name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the recordings are not here: %v", err)
	}
	return dir
}

// step is one line of a recording.
type step struct {
	Dir  string          `json:"dir"`
	Data json.RawMessage `json:"data"`
}

// sentData is the data of recorded clients; they write keys in snake case.
type sentData struct {
	Setup *struct {
		Model string `json:"model"`
		Tools []struct {
			FunctionDeclarations []struct {
				Name       string          `json:"name"`
				Parameters json.RawMessage `json:"parameters"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
	} `json:"setup"`
	ClientContent *struct {
		Turns []struct {
			Parts []struct{ Text string }
		}
	} `json:"client_content"`
	RealtimeInput *struct {
		Audio struct{ Data string }
	} `json:"realtime_input"`
	ToolResponse *struct {
		FunctionResponses []struct {
			ID       string
			Name     string
			Response json.RawMessage
		} `json:"functionResponses"`
	} `json:"tool_response"`
}

func readRecording(t *testing.T, path string) []step {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var steps []step
	for _, l := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		var s step
		if err := json.Unmarshal([]byte(l), &s); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, s)
	}
	return steps
}

// TestReplayRecordedSessions sends the service's recorded messages and compares the events with the golden list of each
// recording.
func TestReplayRecordedSessions(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(sharedDir(t, "fixtures/gemini"), "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		t.Run(name, func(t *testing.T) {
			got := strings.Join(replay(t, readRecording(t, file)), "\n") + "\n"
			golden := filepath.Join("testdata", name+".events")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("events differ (-want +got):\n%s", diff)
			}
		})
	}
}

func replay(t *testing.T, steps []step) []string {
	p := newProvider(t)
	p.first = "-"
	var c *transport.Listener
	var pr *peer
	events := make(chan []string, 1)
	calls := make(chan transport.ToolCall, 8)
	for i, s := range steps {
		if s.Dir == "received" {
			if i > 1 { // the first is setupComplete, already sent
				pr.send(string(s.Data))
			}
			continue
		}
		var sent sentData
		if err := json.Unmarshal(s.Data, &sent); err != nil {
			t.Fatal(err)
		}
		if sent.Setup != nil {
			p.first = string(steps[1].Data)
			var setup transport.Setup
			setup.Model = sent.Setup.Model
			for _, tool := range sent.Setup.Tools {
				for _, d := range tool.FunctionDeclarations {
					setup.Tools = append(setup.Tools, transport.Tool{Name: d.Name, Parameters: d.Parameters})
				}
			}
			c, pr = p.connect(setup)
			go collect(c, calls, events)
			continue
		}
		if err := c.Send(context.Background(), command(t, sent, calls)); err != nil {
			t.Fatal(err)
		}
		pr.next()
	}
	pr.close(1000, "")
	return <-events
}

// command returns the command of an adapter's caller.
func command(t *testing.T, sent sentData, calls <-chan transport.ToolCall) transport.Command {
	switch {
	case sent.ClientContent != nil:
		return transport.UserText{Text: sent.ClientContent.Turns[0].Parts[0].Text}
	case sent.ToolResponse != nil:
		call := <-calls
		r := sent.ToolResponse.FunctionResponses[0]
		if r.ID != call.ID || r.Name != call.Name {
			t.Errorf("recorded answer to %s %s, call is %s %s", r.ID, r.Name, call.ID, call.Name)
		}
		return transport.ToolResult{Call: call.Call, Output: r.Response}
	default:
		pcm, err := audio.AppendFromBase64(nil, []byte(sent.RealtimeInput.Audio.Data))
		if err != nil {
			t.Fatal(err)
		}
		return &transport.AudioIn{PCM: pcm}
	}
}

// collect receives until the connection ends.
func collect(c *transport.Listener, calls chan<- transport.ToolCall, events chan<- []string) {
	var lines []string
	for {
		ev, err := c.Recv(context.Background())
		if err != nil {
			events <- append(lines, "end "+transport.KindOf(err).String())
			return
		}
		if call, ok := ev.(transport.ToolCall); ok {
			calls <- call
		}
		lines = append(lines, line(ev))
	}
}
