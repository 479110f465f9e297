package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"voicegw/internal/audit"
	"voicegw/internal/server"
	"voicegw/internal/testutil"
	"voicegw/registry"
)

// waitFor waits until a program has printed a text.
func waitFor(t *testing.T, c *console, text string) {
	t.Helper()
	testutil.WaitUntil(t, "it prints "+text, func() bool { return strings.Contains(c.String(), text) })
}

// TestAuditFollows: audit --follow prints the last lines, then each new line, through a rotation and the start of a
// gateway, until it is interrupted.
func TestAuditFollows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	file, err := audit.OpenFile(audit.FileOptions{Path: path, MaxBytes: 600})
	if err != nil {
		t.Fatal(err)
	}
	log := audit.New(audit.Options{Lines: file})
	put := func(tool string, ok bool) {
		log.Write(audit.Record{Event: audit.EventTool, ToolID: tool, SessionID: "voice-1", OK: ok, ErrorType: registry.ErrorTransient, Delivered: true})
	}
	for _, tool := range []string{"first", "second", "third"} {
		put(tool, false)
	}
	testutil.WaitUntil(t, "three records are written", func() bool { return log.Stats().Lines.Written == 3 })
	var out, complaints console
	signals, exit := make(chan os.Signal, 1), make(chan int, 1)
	go func() {
		exit <- Run(context.Background(), Process{
			Args: []string{"audit", "--file", path, "--follow", "--limit", "1", "--failed"}, Stdin: strings.NewReader(""),
			Host: server.Host{Stdout: &out, Stderr: &complaints, Signals: signals},
		})
	}()
	waitFor(t, &out, "third")
	put("passing", true)
	for _, tool := range []string{"fourth", "fifth", "sixth", "seventh"} {
		put(tool, false)
		waitFor(t, &out, tool)
	}
	if names, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); err != nil || len(names) < 2 {
		t.Errorf("%v, %v: nothing was rotated", names, err)
	}
	signals <- syscall.SIGINT
	if code := <-exit; code != exitOK {
		t.Errorf("exit code %d: %s", code, complaints.String())
	}
	if text := out.String(); strings.Contains(text, "second") || strings.Contains(text, "passing") || strings.Count(text, "TIME") != 1 || strings.Count(text, "\n") != 6 {
		t.Errorf("it showed\n%s", text)
	}
	if err := log.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestAuditTornLine: audit reports the torn line of a gateway that was killed while it wrote.
func TestAuditTornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := os.WriteFile(path, []byte(`{"event":"tool_execution","time":"2026-11-`), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, complaints bytes.Buffer
	code := Run(t.Context(), Process{Args: []string{"audit", "--file", path}, Stdin: strings.NewReader(""), Host: server.Host{Stdout: &out, Stderr: &complaints}})
	if code != exitOK || !strings.Contains(complaints.String(), "the last line is incomplete") || out.Len() > 0 {
		t.Errorf("exit code %d, %q, %q", code, out.String(), complaints.String())
	}
}
