//go:build !unix

package nonblock

import "syscall"

// tryWriter leaves every byte to the drainer: this platform has no non-blocking writes.
func tryWriter(syscall.RawConn) func([]byte) (int, error) {
	return func([]byte) (int, error) { return 0, nil }
}

// waitReader returns nil: this platform cannot wait without a buffer.
func waitReader(syscall.RawConn) func(Room) (int, error) { return nil }
