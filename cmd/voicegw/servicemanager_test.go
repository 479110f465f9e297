package main

import (
	"bytes"
	"context"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"voicegw/internal/server"
)

// TestServiceManagerNotices: the service manager learns that the gateway serves, is alive, and stops.
func TestServiceManagerNotices(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	r := startIn(t, []string{"NOTIFY_SOCKET=" + socket, "WATCHDOG_USEC=20000"})
	// next returns the next message except signs of life, and the number of these before it.
	next := func() (message string, alive int) {
		got := make([]byte, 200)
		for ; ; alive++ {
			n, err := manager.Read(got)
			if err != nil {
				t.Fatal(err)
			}
			if message = string(got[:n]); message != "WATCHDOG=1" {
				return message, alive
			}
		}
	}
	if message, _ := next(); message != "READY=1" {
		t.Errorf("the manager gets %q first", message)
	}
	if got := make([]byte, 200); true {
		if n, err := manager.Read(got); err != nil || string(got[:n]) != "WATCHDOG=1" {
			t.Errorf("no sign of life: %q, %v", got[:n], err)
		}
	}
	r.signals <- syscall.SIGTERM
	if message, _ := next(); message != "STOPPING=1" {
		t.Errorf("the manager gets %q at the end", message)
	}
	if code := r.ended(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// TestUnreachableServiceManager: the gateway logs a warning and serves.
func TestUnreachableServiceManager(t *testing.T) {
	t.Parallel()
	r := startIn(t, []string{"NOTIFY_SOCKET=" + filepath.Join(t.TempDir(), "gone")})
	r.logged("service manager")
	if got := r.status("/healthz"); got != 200 {
		t.Errorf("GET /healthz: %d", got)
	}
}

// TestHealth: the exit code and the text report the state of a gateway.
func TestHealth(t *testing.T) {
	t.Parallel()
	ask := func(args ...string) (code int, out string) {
		var text bytes.Buffer
		code = Run(context.Background(), Process{Args: append([]string{"health"}, args...), Stdin: strings.NewReader(""), Host: server.Host{Stdout: &text, Stderr: &text}})
		return code, text.String()
	}
	r := start(t, "--drain-timeout", "1m", "--set", "limits.resume_grace=0s")
	url := "--url=http://" + r.addr
	if code, out := ask(url); code != exitOK || out != "ok, sessions: 0\n" {
		t.Errorf("a healthy gateway: %d %q", code, out)
	}
	conn := r.connect()
	defer conn.Abort()
	r.signals <- syscall.SIGTERM
	r.logged("draining")
	if code, out := ask(url); code != exitOK || out != "ok, sessions: 1\n" {
		t.Errorf("a draining gateway: %d %q", code, out)
	}
	if code, out := ask(url, "--ready"); code != exitFailure || !strings.Contains(out, "is not ready (draining)") {
		t.Errorf("a gateway that drains is not ready: %d %q", code, out)
	}
	r.signals <- syscall.SIGTERM
	r.ended()
	if code, out := ask(url); code != exitFailure || !strings.Contains(out, "no gateway answers at") {
		t.Errorf("a gateway that has ended: %d %q", code, out)
	}
	if code, out := ask("--url=nowhere"); code != exitUsage || !strings.Contains(out, "--url must") {
		t.Errorf("an address that is invalid: %d %q", code, out)
	}
}
