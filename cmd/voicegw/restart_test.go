package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"voicegw/internal/testutil"
	"voicegw/protocol"
	"voicegw/registry/registrytest"
)

// TestSessionsContinueAfterARestart: a single gateway is killed or stopped while a client talks. The next process on the
// data folder continues the session: the client resumes with its token, and an old token is refused.
func TestSessionsContinueAfterARestart(t *testing.T) {
	for name, leaves := range map[string]bool{"killed": false, "stopped": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, addr, tools := t.TempDir(), freeAddrs(t, 1)[0], filepath.Join(t.TempDir(), "tools.json")
			if err := os.WriteFile(tools, registrytest.Project(t), 0o600); err != nil {
				t.Fatal(err)
			}
			serve := func() *child {
				c := startChild(t, "voicegw", []string{registryEnv + "=" + tools}, "serve", "--listen", addr, "--data-dir", dir, "--log-format", "json", "--set", "store.sync=interval")
				c.logged("serving")
				return c
			}
			first := serve()
			c := visit(t, addr, nil)
			var began, back protocol.SessionStarted
			next(t, c, "session.started", &began)
			say(t, c, &protocol.InputText{Text: "Good morning"})
			var turn protocol.TurnEnded
			seq := next(t, c, "turn.ended", &turn)

			if leaves {
				first.signal(syscall.SIGTERM)
				var moving protocol.SessionMoving
				seq = next(t, c, "session.moving", &moving)
				if _, err := c.Read(); protocol.CloseStatus(err) != protocol.CloseMoving {
					t.Errorf("the connection closed with %v", err)
				}
				if code := first.exits(); code != exitOK {
					t.Errorf("it ended with %d:\n%s", code, first.said)
				}
			} else {
				first.kill()
			}

			second := serve()
			testutil.WaitUntil(t, "the client resumes", func() bool {
				c = visit(t, addr, &protocol.Resume{SessionID: began.SessionID, Token: began.ResumeToken, LastSeq: seq})
				return seen(c, "session.started", &back)
			})
			if back.SessionID != began.SessionID || !back.Resumed || !back.Snapshot || back.ResumeToken == began.ResumeToken {
				t.Errorf("the client resumed %+v", back)
			}
			var again protocol.ProviderReconnected
			next(t, c, "provider.reconnected", &again)
			if again.How != "replayed" && again.How != "resumed" {
				t.Errorf("the model was reached again: %+v", again)
			}
			say(t, c, &protocol.InputText{Text: "And again"})
			before := turn.Turn
			next(t, c, "turn.ended", &turn)
			if turn.Turn <= before || turn.Status != "completed" {
				t.Errorf("the next turn ended with %+v", turn)
			}
			old := visit(t, addr, &protocol.Resume{SessionID: began.SessionID, Token: began.ResumeToken, LastSeq: seq})
			var refused protocol.Error
			next(t, old, "error", &refused)
			if refused.Code != "resume_refused" {
				t.Errorf("with the old token: %+v", refused)
			}
			second.signal(syscall.SIGTERM)
			second.exits()
		})
	}
}

// seen reads messages up to one of that type, and decodes it into m. It reports false if the connection ends before.
func seen(c *protocol.Conn, typ string, m any) bool {
	for {
		f, err := c.Read()
		if err != nil {
			return false
		}
		var head struct{ Type string }
		if !f.Audio && json.Unmarshal(f.Data, &head) == nil && head.Type == typ {
			return json.Unmarshal(f.Data, m) == nil
		}
	}
}
