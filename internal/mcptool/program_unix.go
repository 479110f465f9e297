//go:build unix

package mcptool

import (
	"os/exec"
	"syscall"
)

// own puts a program into its own process group, so that its children end with it.
func own(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
