package process

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// Child is a program that this one has started. It ends with this program. Its methods may be called concurrently.
type Child struct {
	In  io.WriteCloser // its standard input
	Out io.Reader      // its standard output
	cmd *exec.Cmd
	mum chan struct{} // closed when its standard error has ended
}

// StartChild starts a program; its environment is only cmd.Env. said gets the lines of its standard error, from one
// goroutine; a long line comes in pieces.
func StartChild(cmd *exec.Cmd, said func(line string)) (*Child, error) {
	cmd.Env = append([]string{}, cmd.Env...) // nil would be this program's
	cmd.SysProcAttr = ownGroup()
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	lines, saidErr := cmd.StderrPipe()
	err := cmp.Or(inErr, outErr, saidErr)
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("starting the program: %w", err)
	}
	c := &Child{In: in, Out: out, cmd: cmd, mum: make(chan struct{})}
	go func() {
		defer close(c.mum)
		for r := bufio.NewReader(lines); ; {
			line, _, err := r.ReadLine()
			if err != nil {
				return
			}
			said(string(line))
		}
	}()
	return c, nil
}

// PID returns the id of its process.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Kill kills the program. On Linux that includes its children.
func (c *Child) Kill() { _ = kill(c.cmd.Process) } // it may have ended

// Wait kills the rest of the program when its standard error has ended, or after patience, and returns how it ended. Only one
// goroutine may call it, after the last read of Out.
func (c *Child) Wait(patience time.Duration) error {
	select {
	case <-c.mum:
	case <-time.After(patience):
	}
	c.Kill()
	<-c.mum
	return c.cmd.Wait() //nolint:wrapcheck // the status
}
