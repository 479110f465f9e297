//go:build !linux

package gateway

// setUnsentLimit does nothing on this platform.
func setUnsentLimit(uintptr, int) {}
