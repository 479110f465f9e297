//go:build !unix

package nonblock

import "syscall"

// tryWriter leaves every byte to the drainer: trying is not possible here.
func tryWriter(syscall.RawConn) func([]byte) (int, error) {
	return func([]byte) (int, error) { return 0, nil }
}

// waitReader returns nil: waiting without a buffer is not possible here.
func waitReader(syscall.RawConn) func(Room) (int, error) { return nil }
