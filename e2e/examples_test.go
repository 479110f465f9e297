package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// example is the only block of a language on a page of the documentation.
func example(t *testing.T, page, language string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(text, -1)
	if len(blocks) != 1 {
		t.Fatalf("%s has %d blocks of %s", page, len(blocks), language)
	}
	return string(blocks[0][1])
}

// TestHandoffExamples: the programs of docs/handoff.md run as they stand there, and take
// a conversation to voice and back.
func TestHandoffExamples(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds a program")
	}
	for language, command := range map[string]func(t *testing.T, program string) []string{
		"go": func(t *testing.T, program string) []string {
			binary := filepath.Join(t.TempDir(), "example")
			// From here, so that it has the modules of this project.
			build := exec.Command("go", "build", "-o", binary, program)
			build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS="+os.Getenv("GOFLAGS")+" -trimpath") // as scripts build, so that it is compiled already
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			return []string{binary}
		},
		"js": func(t *testing.T, program string) []string {
			node, err := exec.LookPath("node")
			if err != nil {
				t.Skip("node is not installed")
			}
			for _, flags := range [][]string{{}, {"--experimental-websocket"}} {
				if exec.Command(node, append(flags, "-e", "process.exit(typeof WebSocket === 'function' ? 0 : 1)")...).Run() == nil {
					return append(append([]string{node}, flags...), program)
				}
			}
			t.Skip("this node has no WebSocket")
			return nil
		},
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			st := newStack(t, "openai", setting{speed: 50, playback: 50, firstAudioMS: 10, tools: newToolbox(t)})
			name := map[string]string{"go": "main.go", "js": "example.mjs"}[language]
			program := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(program, []byte(example(t, "handoff.md", language)), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			line := append(command(t, program), st.url)
			cmd := exec.CommandContext(ctx, line[0], line[1:]...)
			cmd.Env = append(os.Environ(), "VOICEGW_API_KEY="+operatorsKey, "NO_PROXY=127.0.0.1,localhost")
			var out, complaints bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &complaints
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s%s", err, out.String(), complaints.String())
			}
			for _, want := range []string{
				"user: When is the robotics lab open?\n", "handback: 1 turn over", "text user: I like robots.\n", "text assistant: Then see the lab.\n",
				"voice user: When is the robotics lab open?\n", "voice assistant: I found one record",
			} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is not in what it prints:\n%s%s", want, out.String(), complaints.String())
				}
			}
		})
	}
}
