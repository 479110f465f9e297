//go:build !linux

package jstool

import "os"

func self() (string, error) { return os.Executable() }

// limitProcess does nothing: only Linux has the limits that hosts need. See docs/javascript-tools.md.
func limitProcess() error { return nil }

func extendProcessorTime() {}
