//go:build !linux

package process

import "errors"

// Read says what a process takes: on Linux alone.
func Read(int) (Usage, error) {
	return Usage{}, errors.New("what a process takes can be read on Linux alone")
}
