//go:build !linux

package gateway

// setUnsentLimit has no equivalent here.
func setUnsentLimit(uintptr, int) {}
