package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"voicegw/protocol"
)

// reportByVoice is a model that calls the tool if the user asks for a report, and says it when it is told of a
// result.
const reportByVoice = `name: report
rules:
  - when: {text: 'has ended\. This is its result.*pages'}
    do: [say: Your report is ready.]
  - when: {text: 'report, please'}
    do:
      - call: {tool: report_make, args: {ref: "2026"}}
      - then: [say: It is being made.]
  - when: {text: any}
    do: [say: Very well.]
`

// answered reads until a turn has ended, and returns what the model said in it.
func (c *mover) answered() (said string) {
	c.t.Helper()
	for {
		var m protocol.Transcript
		if c.seq = next(c.t, c.conn, "transcript", &m); m.Role == "assistant" && m.Final {
			var ended protocol.TurnEnded
			c.seq = next(c.t, c.conn, "turn.ended", &ended)
			return m.Text
		}
	}
}

// TestJobOfAVoiceSession: long work that a voice session has begun ends while the session runs, and its model
// tells the user in a turn of its own, once: with a conversation, and without one.
func TestJobOfAVoiceSession(t *testing.T) {
	for name, talk := range map[string]string{"of a conversation": "c-0123456789abcdef0123456789", "without one": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder, addr, tools := t.TempDir(), freeAddrs(t, 1)[0], jobRegistry(t)
			scenario := filepath.Join(t.TempDir(), "report.yaml")
			if err := os.WriteFile(scenario, []byte(reportByVoice), 0o600); err != nil {
				t.Fatal(err)
			}
			gateway := startChild(t, "voicegw", []string{registryEnv + "=" + tools, jobsEnv + "=" + folder},
				"serve", "--scenario", scenario, "--listen", addr, "--data-dir", t.TempDir(), "--log-format", "json")
			gateway.logged("serving")
			c := &mover{t: t, conn: dial(t, addr)}
			say(t, c.conn, &protocol.Start{InputRate: 24000, OutputRate: 24000, ConversationID: talk})
			c.begun(false)
			say(t, c.conn, &protocol.InputText{Text: "The report, please."})
			if said := c.answered(); said != "It is being made." {
				t.Errorf("the model said %q at once", said)
			}
			if err := os.WriteFile(filepath.Join(folder, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if said := c.answered(); said != "Your report is ready." {
				t.Errorf("the model said %q of the result", said)
			}
			say(t, c.conn, &protocol.InputText{Text: "Thank you."})
			if said := c.answered(); said != "Very well." {
				t.Errorf("after the result the model said %q", said)
			}
			gateway.signal(syscall.SIGTERM)
			gateway.exits()
			if n := strings.Count(gateway.said.String(), "the model was told of the end of a job"); n != 1 {
				t.Errorf("the model was told %d times:\n%s", n, gateway.said)
			}
		})
	}
}
