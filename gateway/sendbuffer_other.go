//go:build !linux

package gateway

func setUnsentLimit(uintptr, int) {}
