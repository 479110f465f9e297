package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"voicegw/internal/auth"
	"voicegw/internal/testutil"
	"voicegw/protocol"
	"voicegw/registry/registrytest"
)

// TestALostSessionEndsAfterARestart: a single gateway is killed, and the client does not resume. The next process on the
// data folder lists the session, ends it after the resume time, and then refuses its token.
func TestALostSessionEndsAfterARestart(t *testing.T) {
	t.Parallel()
	dir, addr, tools := t.TempDir(), freeAddrs(t, 1)[0], filepath.Join(t.TempDir(), "tools.json")
	if err := os.WriteFile(tools, registrytest.Project(t), 0o600); err != nil {
		t.Fatal(err)
	}
	serve := func() *child {
		c := startChild(t, "voicegw", []string{registryEnv + "=" + tools}, "serve", "--listen", addr, "--data-dir", dir, "--log-format", "json", "--set", "store.sync=interval", "--set", "limits.resume_grace=1s")
		c.logged("serving")
		return c
	}
	first := serve()
	c := visit(t, addr, nil)
	var began protocol.SessionStarted
	next(t, c, "session.started", &began)
	say(t, c, &protocol.InputText{Text: "Good morning"})
	var turn protocol.TurnEnded
	seq := next(t, c, "turn.ended", &turn)
	first.kill()

	second := serve()
	key, err := auth.ReadOperatorKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	testutil.WaitUntil(t, "the session is over", func() bool {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/v1/sessions/"+began.SessionID, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var shown struct {
			ID      string `json:"id"`
			EndedAt string `json:"ended_at"`
		}
		if err := json.NewDecoder(resp.Body).Decode(&shown); err != nil || resp.StatusCode != http.StatusOK || shown.ID != began.SessionID {
			t.Fatalf("it is shown as %+v with %s: %v", shown, resp.Status, err)
		}
		return shown.EndedAt != ""
	})
	old := visit(t, addr, &protocol.Resume{SessionID: began.SessionID, Token: began.ResumeToken, LastSeq: seq})
	var refused protocol.Error
	next(t, old, "error", &refused)
	if refused.Code != "resume_refused" {
		t.Errorf("with the token: %+v", refused)
	}
	second.logged("session ended")
	second.kill()
}
