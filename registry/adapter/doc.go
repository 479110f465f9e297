// Package adapter turns a tool's canonical parameter schema into the form that each
// provider accepts: OpenAI's flat form for realtime sessions, its nested form for chat,
// and Gemini's FunctionDeclaration.
//
// The canonical schema is JSON Schema, draft 2020-12: an object with
// additionalProperties false at every object level. The registry validates every call
// against it, whatever form the model was given. So a form may be looser than the
// canonical schema, never tighter:
//
//	every instance that the canonical schema accepts is accepted by each form.
//
// A keyword that a form does not have is rewritten if its meaning survives; put into words
// in the description if the model can act on words and the registry enforces the
// rest; dropped if it only annotates; and refused if the model could otherwise no longer
// know what to send. [Keywords] is the one table that decides this, with the reason for
// each; docs/tool-schemas.md is printed from it.
//
// All functions are pure: no file, no network, no state. References are followed only
// inside the schema itself. The functions may be called concurrently, never panic on parameters
// that the registry accepts, and return the same bytes for the same input. Members of the results come in a
// fixed order (given at each function), properties in the order of the schema's text.
//
// Sources: JSON Schema 2020-12 core and validation; the forms as in OpenAI's realtime
// and chat references and Gemini's Schema and FunctionDeclaration (Live API and function
// calling reference), read 2026-11-20; what the servers refuse beyond their documents
// is noted at each rule.
package adapter
