// Package registry defines, loads, validates and runs the gateway's tools.
//
// A tool is a folder tools/<dash-name>/ with schema.json (a [spec.Spec]), guide.md and handler.go (a function bound
// with [Bind]). The build combines all of them in tool_registry.json (a [File]), whose version is a hash of its
// content. [Load] checks that file and the process's handlers, compiles every schema once, and returns a [Registry].
// A session keeps one immutable [Snapshot] of it and runs calls through it:
//
//	p, refused := snapshot.Prepare("kb_search", spec.ModeVoice, args)
//	if refused != nil { /* NOT_FOUND, MODE_RESTRICTED or VALIDATION */ }
//	p.Clamp(nil)
//	envelope := p.Run(ctx, session)
//
// Every call returns one [Envelope], regardless of the model and the handler. Arguments are decoded strictly,
// completed with defaults and validated before a handler gets them as a Go struct generated from the schema.
//
// Package spec parses schema.json, and package schema compiles its JSON Schemas. This package is independent of
// models, providers and networks, and opens no files: schemas with external references are rejected.
package registry
