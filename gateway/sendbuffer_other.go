//go:build !linux

package gateway

// setUnsentLimit has no equivalent on this platform.
func setUnsentLimit(uintptr, int) {}
