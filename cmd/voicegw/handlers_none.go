//go:build notools

package main

import "voicegw/registry"

// handlers are none: this program is only run to build the tools, which need not
// compile before they are built (scripts/tools).
func handlers() map[string]registry.Handler { return nil }
