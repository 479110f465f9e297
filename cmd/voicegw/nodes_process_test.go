package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"voicegw/internal/testutil"
)

// child is a program in its own process: this test binary under another name, which TestMain knows.
type child struct {
	t     *testing.T
	name  string
	cmd   *exec.Cmd
	said  *console
	ended chan struct{} // closed after the process has ended
	code  int           // the exit code, valid once ended is closed; negative after a signal
}

// childEnv marks a process with a standard input that closes when the test's process ends in any way.
const childEnv = "TEST_CHILD"

// dieWithParent ends a child when its parent has ended.
func dieWithParent() {
	if os.Getenv(childEnv) == "" {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
}

// raceFound is the beginning of the race detector's report.
const raceFound = "WARNING: DATA RACE"

// raceEnv and raceOptions let programs under the race detector exit at once. By default it waits a second for late
// reports.
const (
	raceEnv     = "GORACE"
	raceOptions = "atexit_sleep_ms=0"
)

// startChild starts a program and ends it with the test.
func startChild(t *testing.T, name string, env []string, args ...string) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startProgram(t, self, name, env, args...)
}

// plainSelf is the path of this test binary without the race detector, with which the large tests would need three times
// the processor. Two gateways in one process run under it in e2e's TestChaos, and gateways with few sessions here.
var plainSelf = sync.OnceValues(func() (string, error) {
	if !testutil.RaceEnabled {
		return os.Executable()
	}
	dir, err := os.MkdirTemp("", "voicegw-plain-")
	if err != nil {
		return "", err
	}
	plainDir = dir
	path := filepath.Join(dir, "plain.test")
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // like all builds without the race detector
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compiling the tests without the race detector: %w: %s", err, out)
	}
	return path, nil
})

// plainDir is the folder of plainSelf, removed by removing; empty if unused.
var plainDir string

// removing runs the tests and removes the compiled binary.
type removing struct{ testscript.TestingM }

// Run runs the tests.
func (m removing) Run() int {
	defer func() { _ = os.RemoveAll(plainDir) }() // it is temporary
	return m.TestingM.Run()
}

// startPlainChild is startChild without the race detector.
func startPlainChild(t *testing.T, name string, env []string, args ...string) *child {
	t.Helper()
	path, err := plainSelf()
	if err != nil {
		t.Fatal(err)
	}
	return startProgram(t, path, name, env, args...)
}

// startProgram is startChild for a program at a path.
func startProgram(t *testing.T, path, name string, env []string, args ...string) *child {
	t.Helper()
	c := &child{t: t, name: name, cmd: exec.Command(path), said: &console{}, ended: make(chan struct{})}
	c.cmd.Args = append([]string{name}, args...)
	c.cmd.Env = append([]string{testutil.Env + "=" + os.Getenv(testutil.Env), childEnv + "=1", raceEnv + "=" + raceOptions}, env...)
	c.cmd.Stdout, c.cmd.Stderr = c.said, c.said
	if _, err := c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.ended)
		_ = c.cmd.Wait() // the exit code is in the process state
		c.code = c.cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		c.kill()
		if strings.Contains(c.said.String(), raceFound) {
			t.Errorf("the race detector has found something in %s:\n%s", name, c.said)
		}
	})
	return c
}

// signal sends a signal to the process, if it runs.
func (c *child) signal(s syscall.Signal) {
	c.t.Helper()
	select {
	case <-c.ended:
	default:
		if err := c.cmd.Process.Signal(s); err != nil && !strings.Contains(err.Error(), "finished") {
			c.t.Errorf("%s: %v: %v", c.name, s, err)
		}
	}
}

// kill ends the process like a power loss, and waits until it has ended.
func (c *child) kill() {
	c.signal(syscall.SIGKILL)
	<-c.ended
}

// exits waits until the process has ended, and returns its exit code.
func (c *child) exits() int {
	c.t.Helper()
	testutil.WaitClosed(c.t, c.name+" ends", c.ended)
	return c.code
}

// over reports whether the process has ended.
func (c *child) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// lines returns the lines of its log with a message.
func (c *child) lines(message string) (all []map[string]any) {
	for line := range strings.SplitSeq(c.said.String(), "\n") {
		var fields map[string]any
		if json.Unmarshal([]byte(line), &fields) == nil && fields["msg"] == message {
			all = append(all, fields)
		}
	}
	return all
}

// logged waits for a line of its log.
func (c *child) logged(message string) {
	c.t.Helper()
	testutil.WaitUntil(c.t, c.name+" logs "+message, func() bool {
		if len(c.lines(message)) > 0 {
			return true
		}
		if c.over() {
			c.t.Fatalf("%s has ended with %d and has not logged %q:\n%s", c.name, c.code, message, c.said)
		}
		return false
	})
}
