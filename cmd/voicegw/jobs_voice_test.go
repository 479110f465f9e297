package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"voicegw/internal/audit"
	"voicegw/internal/testutil"
	"voicegw/protocol"
)

// reportByVoice is a model that calls the tool for a user who asks for a report, and speaks the result.
const reportByVoice = `name: report
rules:
  - when: {text: 'Anything else'}
    do: [say: Nothing more.]
  - when: {text: 'Hello again', remembers: 'has ended\. This is its result.*pages'}
    do: [say: Your report is ready.]
  - when: {text: 'has ended\. This is its result.*pages'}
    do: [say: Your report is ready.]
  - when: {text: '^The report, please'}
    do:
      - call: {tool: report_make, args: {ref: "2026"}}
      - then: [say: It is being made.]
  - when: {text: any}
    do: [say: Very well.]
`

// answered reads to the end of a turn and returns the model's text.
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

// TestJobOfAVoiceSession: a job of a voice session ends during the session, and the model tells the user once, in a turn
// of its own; with a conversation and without one.
func TestJobOfAVoiceSession(t *testing.T) {
	for name, talk := range map[string]string{"of a conversation": "c-0123456789abcdef0123456789", "without one": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newReportByVoice(t)
			gateway := v.serve()
			c := v.calls(talk)
			say(t, c.conn, &protocol.InputText{Text: "The report, please."})
			if said := c.answered(); said != "It is being made." {
				t.Errorf("the model spoke %q at once", said)
			}
			v.finish(t)
			if said := c.answered(); said != "Your report is ready." {
				t.Errorf("the model spoke %q about the result", said)
			}
			say(t, c.conn, &protocol.InputText{Text: "Thank you."})
			if said := c.answered(); said != "Very well." {
				t.Errorf("after the result the model spoke %q", said)
			}
			gateway.signal(syscall.SIGTERM)
			gateway.exits()
			if n := strings.Count(gateway.said.String(), "the end of a job was reported to the model"); n != 1 {
				t.Errorf("the model got the result %d times:\n%s", n, gateway.said)
			}
		})
	}
}

// TestJobOfAKilledVoiceSession: a gateway is killed during a job of a voice session. The next process repeats the job and
// the result is spoken once: in the resumed session, with or without a conversation, or in the next session of the
// conversation if the caller hung up.
func TestJobOfAKilledVoiceSession(t *testing.T) {
	const conversation = "c-0123456789abcdef0123456789"
	for name, c := range map[string]struct {
		talk    string
		returns bool
	}{"of a conversation": {conversation, true}, "without one": {"", true}, "whose caller has gone": {conversation, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newReportByVoice(t)
			first := v.serve()
			caller := v.calls(c.talk)
			say(t, caller.conn, &protocol.InputText{Text: "The report, please."})
			if said := caller.answered(); said != "It is being made." {
				t.Errorf("the model spoke %q at once", said)
			}
			testutil.WaitUntil(t, "the work begins", func() bool { return v.attempts(t) == 1 })
			first.kill()

			second := v.serve()
			if c.returns {
				caller.comesBack(v.addr)
			}
			testutil.WaitUntil(t, "the work begins again", func() bool { return v.attempts(t) == 2 })
			v.finish(t)
			second.logged("job ended")
			if !c.returns {
				caller = v.calls(c.talk)
				say(t, caller.conn, &protocol.InputText{Text: "Hello again."})
			}
			caller.hears("Your report is ready.")
			say(t, caller.conn, &protocol.InputText{Text: "Thank you."})
			if said := caller.answered(); said != "Very well." {
				t.Errorf("after the result the model spoke %q", said)
			}
			if c.talk != "" {
				say(t, caller.conn, &protocol.End{})
				var over protocol.SessionEnded
				next(t, caller.conn, "session.ended", &over)
				caller = v.calls(c.talk)
				say(t, caller.conn, &protocol.InputText{Text: "Anything else?"})
				if said := caller.answered(); said != "Nothing more." {
					t.Errorf("the next session spoke %q", said)
				}
			}
			second.signal(syscall.SIGTERM)
			second.exits()
			delivered := 0
			if _, err := audit.ReadFiles(t.Context(), filepath.Join(v.data, "audit", "audit.jsonl"), func(r audit.Record, _ []byte) error {
				if r.Event == audit.EventJobTold {
					delivered++
				}
				return nil
			}); err != nil || delivered != 1 || v.attempts(t) != 2 {
				t.Errorf("the audit has %d deliveries after %d attempts, %v:\n%s", delivered, v.attempts(t), err, second.said)
			}
		})
	}
}

// hears reads until the model has spoken a text and its turn has ended. After a resume the last text may be sent again
// first.
func (c *mover) hears(words string) {
	c.t.Helper()
	for {
		var m protocol.Transcript
		if c.seq = next(c.t, c.conn, "transcript", &m); m.Role == "assistant" && m.Final && m.Text == words {
			var ended protocol.TurnEnded
			c.seq = next(c.t, c.conn, "turn.ended", &ended)
			return
		}
	}
}

// reportingByVoice is a gateway with the slow tool, and a model that calls it.
type reportingByVoice struct {
	t                                   *testing.T
	folder, data, addr, tools, scenario string
}

func newReportByVoice(t *testing.T) *reportingByVoice {
	t.Helper()
	v := &reportingByVoice{t: t, folder: t.TempDir(), data: t.TempDir(), addr: freeAddrs(t, 1)[0], tools: jobRegistry(t), scenario: filepath.Join(t.TempDir(), "report.yaml")}
	if err := os.WriteFile(v.scenario, []byte(reportByVoice), 0o600); err != nil {
		t.Fatal(err)
	}
	return v
}

// serve starts a process of the gateway.
func (v *reportingByVoice) serve() *child {
	c := startChild(v.t, "voicegw", []string{registryEnv + "=" + v.tools, jobsEnv + "=" + v.folder},
		"serve", "--scenario", v.scenario, "--listen", v.addr, "--data-dir", v.data, "--log-format", "json", "--set", "store.sync=interval")
	c.logged("serving")
	return c
}

// calls starts a session, with or without a conversation.
func (v *reportingByVoice) calls(talk string) *mover {
	c := &mover{t: v.t, conn: dial(v.t, v.addr, false)}
	say(v.t, c.conn, &protocol.Start{InputRate: 24000, OutputRate: 24000, ConversationID: talk})
	c.begun(false)
	return c
}

// attempts returns the number of attempts at the job.
func (v *reportingByVoice) attempts(t *testing.T) (n int) {
	for _, some := range (world{filepath.Join(v.folder, "attempts")}).effects(t) {
		n += len(some)
	}
	return n
}

// finish lets the job end.
func (v *reportingByVoice) finish(t *testing.T) {
	if err := os.WriteFile(filepath.Join(v.folder, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
