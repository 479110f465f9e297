//go:build notools

package server

import "voicegw/registry"

// handlers is empty in a program that only builds tools, because their code may not compile yet (scripts/tools).
func handlers() map[string]registry.Handler { return nil }
