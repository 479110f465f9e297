//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	proc "voicegw/internal/process"
)

// process is a process that the bench has started. It ends when its input ends.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr tail
}

// start starts a program on some cores (in taskset's notation; empty means all), with env
// added to the environment. All participants run at the same priority, a little above
// other programs if that is permitted.
func start(on string, env []string, name string, args ...string) (*process, error) {
	// nice(1) runs it anyway if that is not permitted, and is replaced by it.
	line := append([]string{"nice", "-n", preferred, name}, args...)
	if on != "" {
		line = append([]string{"taskset", "-c", on}, line...)
	}
	p := &process{cmd: exec.Command(line[0], line[1:]...)} //nolint:gosec // the bench's own programs
	p.cmd.Env, p.cmd.Stderr = append(p.cmd.Environ(), env...), &p.stderr
	// Nothing is left running if the bench itself is killed.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	return p, nil
}

// preferred is the nice value of all participants.
const preferred = "-5"

// cpu returns its user and system time.
func (p *process) cpu() (time.Duration, error) {
	u, err := proc.Read(p.cmd.Process.Pid)
	return u.CPU, err
}

// rss returns its resident memory, in bytes.
func (p *process) rss() (int64, error) {
	u, err := proc.Read(p.cmd.Process.Pid)
	return u.RSS, err
}

// line returns the next line of its output.
func (p *process) line() (string, error) {
	s, err := p.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%s: %w%s", strings.Join(p.cmd.Args, " "), err, p.stderr.text())
	}
	return strings.TrimSpace(s), nil
}

// say writes a line to its input.
func (p *process) say(s string) error {
	_, err := io.WriteString(p.in, s+"\n")
	return err
}

// stop ends it and waits for it.
func (p *process) stop() {
	_ = p.in.Close()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(5*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	// Its exit status says nothing: it was told to end.
	var exit *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		_ = p.cmd.Process.Kill()
	}
}

// tail keeps the end of a process's error output.
type tail struct {
	mu sync.Mutex // guards b
	b  []byte
}

// maxTail is how much is kept, in bytes.
const maxTail = 2048

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	t.b = t.b[max(len(t.b)-maxTail, 0):]
	return len(p), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.b) == 0 {
		return ""
	}
	return ":\n" + string(t.b)
}
