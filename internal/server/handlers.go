//go:build !notools

package server

import (
	"voicegw/registry"
	"voicegw/tools"
)

func handlers() map[string]registry.Handler { return tools.Handlers() }
