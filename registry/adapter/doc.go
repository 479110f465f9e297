// Package adapter converts a tool's canonical parameter schema to the forms of the providers: OpenAI's flat form for
// realtime sessions, its nested form for chat, and Gemini's FunctionDeclaration.
//
// The canonical schema is JSON Schema, draft 2020-12, with additionalProperties false at every object level. The
// registry validates every call against it. So a form may accept more than the canonical schema, never less.
//
//	every instance that the canonical schema accepts is accepted by each form.
//
// All functions are pure, deterministic and safe for concurrent use, and follow only references inside the schema.
// They don't panic on parameters that the registry accepts. Members of results have a documented order, properties
// that of the schema's text.
//
// Sources: JSON Schema 2020-12 core and validation; OpenAI's realtime and chat references and Gemini's Schema and
// FunctionDeclaration (Live API and function calling reference), read 2026-11-20. Undocumented restrictions of
// servers are noted at each rule.
package adapter
