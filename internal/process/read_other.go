//go:build !linux

package process

import "errors"

// Read is available on Linux only.
func Read(int) (Usage, error) {
	return Usage{}, errors.New("process usage is available on Linux only")
}
