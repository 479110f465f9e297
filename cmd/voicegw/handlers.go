//go:build !notools

package main

import (
	"voicegw/registry"
	"voicegw/tools"
)

func handlers() map[string]registry.Handler { return tools.Handlers() }
