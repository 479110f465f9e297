//go:build !linux

package process

import (
	"errors"
	"os"
	"syscall"
)

// Read is available on Linux only.
func Read(int) (Usage, error) {
	return Usage{}, errors.New("process usage is available on Linux only")
}

func ownGroup() *syscall.SysProcAttr { return nil }

func kill(p *os.Process) error { return p.Kill() }
