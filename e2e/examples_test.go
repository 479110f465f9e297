package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// built returns a command that runs an example in Go.
func built(t *testing.T, name string) []string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "example")
	build := exec.Command("go", "build", "-o", binary, "../examples/"+name)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS="+os.Getenv("GOFLAGS")+" -trimpath") // the flags of scripts/goenv.sh, for its cache
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return []string{binary}
}

// scripted returns a command that runs an example in JavaScript, with a WebSocket.
func scripted(t *testing.T, name string) []string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	for _, flags := range [][]string{{}, {"--experimental-websocket"}} {
		if exec.Command(node, append(flags, "-e", "process.exit(typeof WebSocket === 'function' ? 0 : 1)")...).Run() == nil {
			return append(append([]string{node}, flags...), "../examples/"+name)
		}
	}
	t.Skip("this node has no WebSocket")
	return nil
}

// TestExamples runs the programs in examples against a gateway and compares their output. scripts/test-pack.sh runs the
// browser page, and build.TestDocsTools the tools.
func TestExamples(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("this test builds programs")
	}
	handoff := []string{
		"user: When is the robotics lab open?\n", "handback: 1 turn over", "text user: I like robots.\n", "text assistant: Then see the lab.\n",
		"voice user: When is the robotics lab open?\n", "voice assistant: I found one record",
	}
	for name, tt := range map[string]struct {
		command func(t *testing.T, name string) []string
		args    func(gateway string) []string
		input   string
		want    []string
	}{
		"handoff":             {command: built, want: handoff},
		"handoff/handoff.mjs": {command: scripted, want: handoff},
		"go-client": {
			command: built,
			args:    func(gateway string) []string { return []string{gateway + "/v1/voice", "Thanks"} },
			want:    []string{"user: Thanks\nassistant: You are welcome.\n"},
		},
		"text-agent/chat.mjs": {
			command: scripted, input: "When is the robotics lab open?\nThanks\nI want to talk by voice\n",
			want: []string{"(kb_search)\n", "I found one record", "You are welcome.\n", "(start_voice_session)\n", "Continue by voice at ws://"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := newStack(t, "openai", setting{speed: 50, playback: 50, firstAudioMS: 10, tools: newToolbox(t), text: true})
			args := []string{st.url}
			if tt.args != nil {
				args = tt.args(st.url)
			}
			line := append(tt.command(t, name), args...)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, line[0], line[1:]...)
			cmd.Env = append(os.Environ(), "VOICEGW_API_KEY="+operatorsKey, "NO_PROXY=127.0.0.1,localhost")
			var out, complaints bytes.Buffer
			cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(tt.input), &out, &complaints
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s%s", err, out.String(), complaints.String())
			}
			for _, want := range tt.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the output lacks %q:\n%s%s", want, out.String(), complaints.String())
				}
			}
		})
	}
}
