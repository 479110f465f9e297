package mcptool

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"time"

	"voicegw/registry/document"
)

// program is a running MCP server.
type program struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  io.Reader
	done chan struct{} // closed when it has ended
}

// graceful is the time between closing the input of a program and killing it.
const graceful = 2 * time.Second

// startProgram starts a program with only the given environment. Its standard error is logged.
func startProgram(command, env []string, logger *slog.Logger) (*program, error) {
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec,noctx // the operator names it; kill ends it
	cmd.Env = append([]string{}, env...)
	own(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the program: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the program: %w", err)
	}
	said, err := cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the program: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the program: %w", err)
	}
	p := &program{cmd: cmd, in: in, out: out, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		l := &lines{from: bufio.NewReader(said), drop: func(string) {}}
		for {
			line, err := l.line()
			if len(line) > 0 {
				logger.Debug("the program says", "line", document.Shorten(document.CleanText(string(line)), maxSaid))
			}
			if err != nil && err != errTooLong { //nolint:errorlint // line returns it as it is
				return
			}
		}
	}()
	return p, nil
}

// kill closes the program's input, and kills the program and its children after a while.
func (p *program) kill() {
	_ = p.in.Close() // it may have ended
	select {
	case <-p.done:
	case <-time.After(graceful):
	}
	_ = killGroup(p.cmd) // also children that it has left
	<-p.done
	_ = p.cmd.Wait() // how it ended does not matter
}
