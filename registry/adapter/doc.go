// Package adapter turns a tool's canonical parameter schema into the form that each
// provider takes: OpenAI's flat form for realtime sessions, its nested form for chat,
// and Gemini's FunctionDeclaration.
//
// The canonical schema is JSON Schema, draft 2020-12: an object with
// additionalProperties false at every object level. The registry validates every call
// against it, whatever form the model was given. So a form may be looser than the
// canonical schema, never tighter:
//
//	every instance that the canonical schema accepts is accepted by each form.
//
// What a form has no keyword for is rewritten where the meaning survives, said in words
// in the description where the model can act on words and the registry enforces the
// rest, dropped where it only annotates, and refused where the model could no longer
// know what to send. [Keywords] is the one table that decides this, with the reason for
// each; docs/tool-schemas.md is printed from it.
//
// All functions are pure: no file, no network, no state. References are followed only
// inside the schema itself. They may be called concurrently, never panic on outside
// input, and give the same bytes for the same input. Members of the results come in a
// fixed order (named at each function), properties in the order of the schema's text.
//
// Sources: JSON Schema 2020-12 core and validation; the forms as in OpenAI's realtime
// and chat references and Gemini's Schema and FunctionDeclaration (Live API and function
// calling reference), read 2026-11-20; what the servers refuse beyond their documents
// is said at each rule.
package adapter
