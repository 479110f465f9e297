//go:build !notools

package main

import (
	"voicegw/registry"
	"voicegw/tools"
)

// handlers are the handlers of the tools in this binary.
func handlers() map[string]registry.Handler { return tools.Handlers() }
