//go:build !notools

package main

import (
	"voicegw/registry"
	"voicegw/tools"
)

// handlers are those of the tools in this binary.
func handlers() map[string]registry.Handler { return tools.Handlers() }
