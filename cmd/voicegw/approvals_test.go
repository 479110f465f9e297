package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"voicegw/internal/server"
	"voicegw/store"
)

// TestApprovalsLeftOpen: the log of the next gateway and voicegw audit --open show the approved calls with unknown
// outcome of a killed gateway, without their tokens.
func TestApprovalsLeftOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kept, err := store.Open(t.Context(), store.Options{Dir: filepath.Join(dir, "store"), Sync: store.SyncInterval})
	if err != nil {
		t.Fatal(err)
	}
	const many = 20 + 2
	for i := range many {
		q := store.Confirmation{
			Token: fmt.Sprintf("cf_secret%02d", i), Reference: fmt.Sprintf("REF%03d", i), Session: "voice-1", User: "ada", Conversation: "c-1",
			Tool: "calendar_create_event", ExpiresAt: time.Now().Add(time.Minute),
		}
		if err := kept.Confirmations.Create(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		if _, err := kept.Confirmations.Resolve(t.Context(), q.Token, "", true, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if err := kept.Close(); err != nil {
		t.Fatal(err)
	}

	r := start(t, "--data-dir", dir)
	line := r.logged("the outcome of an approved action is unknown: the gateway stopped before it finished")
	if line["tool"] != "calendar_create_event" || line["reference"] != "REF000" || line["session_id"] != "voice-1" ||
		line["conversation_id"] != "c-1" || line["user_id"] != "ada" || line["begun"] != false || line["approved_at"] == nil {
		t.Errorf("logged %v", line)
	}
	if n := strings.Count(r.err.String(), "the outcome of an approved action is unknown"); n != 20 {
		t.Errorf("%d lines", n)
	}
	if more := r.logged("the outcomes of more approved actions are unknown; voicegw audit --open lists them"); more["more"] != 2.0 {
		t.Errorf("logged %v", more)
	}
	ask := func(args ...string) (string, string, int) {
		var out, complaints console
		code := Run(context.Background(), Process{
			Args: append([]string{"audit", "--open", "--url", "http://" + r.addr, "--data-dir", dir}, args...), Stdin: strings.NewReader(""),
			Host: server.Host{Stdout: &out, Stderr: &complaints},
		})
		return out.String(), complaints.String(), code
	}
	out, complaints, code := ask()
	if lines := strings.Split(strings.TrimSpace(out), "\n"); code != exitOK || len(lines) != many+1 || !strings.Contains(lines[1], "REF000") || !strings.Contains(lines[1], "c-1") {
		t.Errorf("%d %s\n%s", code, out, complaints)
	}
	asJSON, _, _ := ask("--json")
	if !strings.Contains(asJSON, `"total": 22`) && !strings.Contains(asJSON, `"total":22`) {
		t.Error(asJSON)
	}
	if all := out + asJSON + r.err.String(); strings.Contains(all, "cf_secret") {
		t.Error("a token is shown")
	}
	if _, complaints, code := ask("--tool", "x"); code != exitUsage || !strings.Contains(complaints, "--open") {
		t.Errorf("with a filter: %d %s", code, complaints)
	}
}
