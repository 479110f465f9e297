//go:build !notools

package main

import (
	"voicegw/registry"
	"voicegw/tools"
)

// handlers returns the handlers of the built-in tools.
func handlers() map[string]registry.Handler { return tools.Handlers() }
