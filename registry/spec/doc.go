// Package spec parses and checks what a tool declares in schema.json, a [Spec], without a handler: see [Parse].
// [Read] also returns the compiled parts for package registry, which loads and runs the tools.
package spec
