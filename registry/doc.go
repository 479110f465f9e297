// Package registry defines, loads, validates and runs the gateway's tools.
//
// A tool is three files of tools/<dash-name>/: schema.json (a [spec.Spec]), guide.md
// and handler.go (a function bound with [Bind]). The build makes one file of all
// of them, tool_registry.json (a [File]), whose version is the hash of its
// content. [Load] checks that file against itself and against the handlers of the
// process, compiles every schema once, and returns a [Registry]. A session holds one
// immutable [Snapshot] of it and executes calls through it:
//
//	p, refused := snapshot.Prepare("kb_search", spec.ModeVoice, args)
//	if refused != nil { /* NOT_FOUND, MODE_RESTRICTED or VALIDATION */ }
//	p.Clamp(nil)
//	envelope := p.Run(ctx, session)
//
// Every call ends in one [Envelope], whatever the model sent and whatever the
// handler did. Arguments reach a handler as a Go struct that is generated from the
// schema, after they were decoded strictly, completed with the schema's defaults and
// validated.
//
// What a schema.json declares is read in package spec, and its JSON Schema is compiled in package schema.
//
// The package knows nothing of models, providers and sockets, and opens no file
// and no address: a schema that refers outside itself is refused.
package registry
