//go:build !linux

package nonblock

import "syscall"

// hungUp reports false: this platform does not say.
func hungUp(syscall.RawConn) bool { return false }
