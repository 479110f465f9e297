//go:build notools

package main

import "voicegw/registry"

// handlers is empty: this program runs only to build the tools, whose code need not compile before
// they are built (scripts/tools).
func handlers() map[string]registry.Handler { return nil }
