//go:build !unix

package mcptool

import "os/exec"

func own(*exec.Cmd) {}

// killGroup kills only the program; its children must notice that their input has ended.
func killGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }
