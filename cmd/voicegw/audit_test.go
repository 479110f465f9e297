package main

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"voicegw/audit"
	"voicegw/registry"
)

// waitFor waits until a program has said something.
func waitFor(t *testing.T, c *console, text string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	for !strings.Contains(c.String(), text) {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("it does not say %q but:\n%s", text, c.String())
		}
	}
}

// TestAuditFollows: the last lines that there are, then each as it comes, through a
// rotation, until interrupted; and a gateway that starts later.
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
	until := time.NewTimer(20 * time.Second)
	defer until.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for log.Stats().Lines.Written < 3 {
		select {
		case <-tick.C:
		case <-until.C:
			t.Fatal("nothing is written")
		}
	}
	var out, complaints console
	signals, exit := make(chan os.Signal, 1), make(chan int, 1)
	go func() {
		exit <- Run(context.Background(), Process{
			Args: []string{"audit", "--file", path, "--follow", "--limit", "1", "--failed"}, Stdin: strings.NewReader(""),
			Stdout: &out, Stderr: &complaints, Signals: signals,
		})
	}()
	waitFor(t, &out, "third")
	put("passing", true)
	for _, tool := range []string{"fourth", "fifth", "sixth", "seventh"} {
		put(tool, false)
		waitFor(t, &out, tool)
	}
	if names, err := audit.Files(path); err != nil || len(names) < 2 {
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

// TestAuditTellsTornLine: the gateway was killed while it wrote.
func TestAuditTellsTornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := os.WriteFile(path, []byte(`{"event":"tool_execution","time":"2026-11-`), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, complaints bytes.Buffer
	code := Run(t.Context(), Process{Args: []string{"audit", "--file", path}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &complaints})
	if code != exitOK || !strings.Contains(complaints.String(), "the last line is not complete") || out.Len() > 0 {
		t.Errorf("exit code %d, %q, %q", code, out.String(), complaints.String())
	}
}

func TestAuditTimes(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"":                          "0001-01-01T00:00:00Z",
		"2h":                        "2026-11-20T08:00:00Z",
		"90m":                       "2026-11-20T08:30:00Z",
		"3d":                        "2026-11-17T10:00:00Z",
		"0s":                        "2026-11-20T10:00:00Z",
		"2026-11-19":                "2026-11-19T00:00:00Z",
		"2026-11-20T09:00:00.5Z":    "2026-11-20T09:00:00.5Z",
		"2026-11-20T09:00:00+02:00": "2026-11-20T07:00:00Z",
	} {
		if got, err := timeOf("--since", text, now); err != nil || got.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("%q: %v, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"yesterday", "-2h", "d", "-1d", "99999d", "2026-11-20 09:00", "5"} {
		if got, err := timeOf("--since", text, now); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestAuditOutcomes(t *testing.T) {
	for _, tt := range []struct {
		want, colour string
		r            audit.Record
	}{
		{"ok", green, audit.Record{OK: true, Delivered: true}},
		{"cached", yellow, audit.Record{OK: true, CacheHit: true, Delivered: true}},
		{"cached, not delivered", yellow, audit.Record{OK: true, CacheHit: true}},
		{"not delivered", yellow, audit.Record{OK: true}},
		{"TRANSIENT", red, audit.Record{ErrorType: registry.ErrorTransient, Delivered: true}},
		{"TRANSIENT, not delivered", red, audit.Record{ErrorType: registry.ErrorTransient}},
		{"failed", red, audit.Record{Delivered: true}},
		{"expired", yellow, audit.Record{Event: audit.EventConfirmation, Confirmation: "expired"}},
		{"refused A,B", yellow, audit.Record{Event: audit.EventIntent, Refused: []registry.IntentType{"A", "B"}}},
		{"what comes next year", yellow, audit.Record{Event: "what comes next year"}},
	} {
		if tt.r.Event == "" {
			tt.r.Event = audit.EventTool
		}
		if got, colour := outcomeOf(tt.r); got != tt.want || colour != tt.colour {
			t.Errorf("%+v: %q %q, want %q %q", tt.r, got, colour, tt.want, tt.colour)
		}
	}
}

// TestAuditOnATerminal: the outcome is coloured, and a line is not wider than the
// terminal, colours not counted.
func TestAuditOnATerminal(t *testing.T) {
	r := audit.Record{Event: audit.EventTool, ToolID: "kb_search", SessionID: "voice-1", OK: true, Delivered: true, Confirmation: strings.Repeat("x", 300)}
	for _, width := range []int{0, 40, 80, 120, 160} {
		var b bytes.Buffer
		a := &auditPrinter{out: bufio.NewWriter(&b), width: width, colour: true}
		if err := a.record(r, nil); err != nil {
			t.Fatal(err)
		}
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			plain := strings.NewReplacer(green, "", "\x1b[0m", "").Replace(strings.TrimSuffix(line, "\n"))
			if n := len([]rune(plain)); width > 0 && n > width {
				t.Errorf("width %d: a line of %d: %q", width, n, plain)
			}
		}
		if coloured := strings.Contains(b.String(), green+"ok\x1b[0m"); coloured != (width == 0 || width >= 80) {
			t.Errorf("width %d: %q", width, b.String())
		}
	}
}
